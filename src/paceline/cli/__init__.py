"""Stop 8 of 8: the command `paceline`, for people and their scripts.

In     words typed in a shell, YAML files, and what the cluster answers.
Out    tables, logs, progress, questions, and exit codes that mean something.
Never  reaches a cluster but through the SDK, prints a stack trace, or passes on what a terminal would obey.
"""
