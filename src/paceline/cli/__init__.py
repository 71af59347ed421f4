"""Stop 8 of 8: the command `paceline`, for people and their scripts.

In     command-line arguments, YAML files, and responses of the cluster.
Out    tables, logs, progress, questions, and documented exit codes.
Never  accesses a cluster except through the SDK, prints a stack trace, or passes control sequences to a terminal.
"""
