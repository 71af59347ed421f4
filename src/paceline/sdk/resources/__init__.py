"""Named things beside jobs: volumes, code repositories, TensorBoards and notebooks.

In     names that people use.
Out    objects of the cluster behind these names.
Never  prints.
"""
