"""Stop 6 of 8, inside the pod: carry code and data in, and results out.

In     words on a command line that `kinds/feed.py` writes, and files of secrets.
Out    files in folders and buckets; one message for the status of the container; an exit code.
Never  reaches a cluster, or puts a secret into words, variables, messages or files.
"""
