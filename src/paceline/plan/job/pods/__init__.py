"""The pods and other objects of a job, as manifests.

In     the view of one job and an attempt.
Out    manifests to create.
Never  creates them.
"""
