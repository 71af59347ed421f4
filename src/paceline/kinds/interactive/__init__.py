"""TensorBoard and Notebook.

In     the spec of one TensorBoard or Notebook.
Out    every fault in it; or the workload that runs it.
Never  knows a job kind.
"""
