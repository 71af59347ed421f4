"""The life of a pod: start, hooks, restart, eviction, termination, status.

In     pods and the state files of their containers.
Out    starts and stops of containers, pod statuses and events.
Never  enters a namespace itself.
"""
