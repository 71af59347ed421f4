"""The job controller.

In     jobs, their pods and the logs of failed replicas.
Out    job status, pods, Services and events.
Never  decides by itself.
"""
