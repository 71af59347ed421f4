"""Programs that run inside user pods: git, upload, download, install, ssh replacement.

In     arguments that `kinds/pod_injection.py` writes, and files of secrets.
Out    files in folders and buckets; a termination message; an exit code.
Never  reaches a cluster, or puts a secret into arguments, variables, messages or files.
"""
