"""Custom resources: which ones are served, and how their objects are validated.

In     CustomResourceDefinitions from the store.
Out    served resources, compiled schemas, field errors.
Never  handles a request by itself.
"""
