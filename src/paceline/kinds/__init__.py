"""What a person may write: typed specs, defaults, validation, expansion.

In     the spec of one object, as written.
Out    every fault in it; or a Gang: replicas with templates, commands and environment.
Never  reads a pod, a clock or a cluster.
"""
