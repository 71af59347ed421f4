"""Stop 6 of 8: a kubelet for processes.

In     the pods bound to this machine, the claims they mount, and the folders their containers left.
Out    sandboxed processes, their logs and exit records, and pod statuses as a kubelet words them.
Never  decides about jobs, imports control, remembers what only its own memory holds, or ends with its pods.
"""
