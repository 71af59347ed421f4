"""Stop 1 of 8: the specs that users write, one file per kind.

In     the spec of one object, as its author wrote it.
Out    all its faults; or a Gang: members with pod templates, commands and environment, independent of the framework.
Never  reads a pod, a clock, a cluster, or another kind.
"""
