"""The garbage collector: deletes what no owner holds any more.

In     the metadata of every object that the cluster serves.
Out    deletes, guarded by uid and revision.
Never  reads a spec or a status.
"""
