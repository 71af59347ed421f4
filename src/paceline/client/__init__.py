"""Stop 3 of 8: see a cluster, ours or a real one, through the Kubernetes API alone.

In     verbs on objects: get, list, watch, create, patch, delete, logs.
Out    objects as dicts, errors by who must act, caches that follow a watch.
Never  knows which cluster answers, or keeps what it could read again.
"""
