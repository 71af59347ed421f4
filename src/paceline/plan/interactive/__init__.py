"""Decide what happens to a TensorBoard or Notebook.

In     the view of one TensorBoard or Notebook.
Out    its status, and the objects to create and delete.
Never  knows how the program is started.
"""
