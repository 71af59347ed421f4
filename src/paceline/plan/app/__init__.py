"""Decide what happens to a training application.

In     the view of one application and its jobs.
Out    its status, and the next revision.
Never  runs a pod.
"""
