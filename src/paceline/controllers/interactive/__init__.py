"""The controller of TensorBoards and Notebooks.

In     TensorBoards, Notebooks, and the jobs that want one.
Out    their pods, Services and status.
Never  decides by itself.
"""
