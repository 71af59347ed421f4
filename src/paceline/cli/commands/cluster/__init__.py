"""Commands on the cluster itself: start, stop, backup, environments, Kubernetes mode.

In     options and arguments parsed by click.
Out    a cluster that is started, stopped, backed up or verified.
Never  imports a command that is not used.
"""
