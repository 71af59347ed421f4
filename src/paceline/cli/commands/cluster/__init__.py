"""Commands on the cluster itself: start, stop, backup, environments, Kubernetes mode.

In     options and arguments that click has read.
Out    a cluster started, stopped, copied or checked.
Never  imported before its command is typed.
"""
