"""Applications: values, revisions and resources.

In     values files and names of applications.
Out    handles to applications and their revisions.
Never  prints.
"""
