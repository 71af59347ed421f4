"""Scheduling: which gang runs, on which node, and whom it preempts.

In     pods that wait, nodes and what runs on them.
Out    bindings, preemptions, and reasons for waiting.
Never  binds a pod itself.
"""
