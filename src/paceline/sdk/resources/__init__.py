"""Named resources other than jobs: volumes, code repositories, TensorBoards and notebooks.

In     names chosen by users.
Out    the objects of the cluster with these names.
Never  prints.
"""
