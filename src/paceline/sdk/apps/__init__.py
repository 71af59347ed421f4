"""Applications: values, revisions, what belongs to them.

In     values files and names of applications.
Out    applications as values.
Never  prints.
"""
