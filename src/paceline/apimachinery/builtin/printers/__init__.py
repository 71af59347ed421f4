"""Table columns of the built-in kinds, as kubectl prints them.

In     an object and the current time.
Out    the cells of its row.
Never  reads another object.
"""
