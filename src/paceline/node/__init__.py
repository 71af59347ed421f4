"""A kubelet for processes.

In     the pods bound to this machine, the claims they mount, and the state files of their containers.
Out    sandboxed processes, their logs and exit records, and pod statuses as a kubelet words them.
Never  decides about jobs, imports controllers, keeps state only in memory, or ends with its pods.
"""
