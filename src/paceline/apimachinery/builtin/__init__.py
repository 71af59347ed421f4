"""The kinds that every Kubernetes has: names, schemas, defaults, validation, columns.

In     data about kinds, generated from a real server and shipped beside this file.
Out    resources for a scheme, and the component schemas that other kinds may refer to.
Never  a kind of our own.
"""
