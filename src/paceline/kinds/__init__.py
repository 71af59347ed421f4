"""Stop 1 of 8: what a person may write, one file per job kind.

In     the spec of one object, as written.
Out    every fault in it; or a Gang: members with templates, commands and environment, and nothing of a framework.
Never  reads a pod, a clock, a cluster, or another kind.
"""
