"""Jobs in queues and gangs of other schedulers: Kueue's Workload, and the PodGroups of several schedulers.

In     the gang of a job, its status, and the objects of the other scheduler.
Out    manifests, whether the job may run, and where its pods are placed.
Never  decides who is next: that is the other scheduler's part.
"""
