"""JSON patch, merge patch and strategic merge patch.

In     an object and a patch.
Out    the patched object, or the error that names the failing path.
Never  reads or writes a store.
"""
