"""Decide what happens to a job.

In     the view of one job: gang, pods, last status.
Out    a plan.
Never  knows a framework.
"""
