"""Parts of a spec that several kinds share.

In     one field of a spec.
Out    its typed value, its faults, its schema.
Never  knows the kind it stands in.
"""
