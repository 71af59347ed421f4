"""Stops 2 and 7 of 8: the Kubernetes REST surface over a store.

In     HTTP requests of kubectl, controllers, the agent and people, each with a token.
Out    objects, tables, streams of changes, and Status bodies that say who must act.
Never  decides what a job does, runs a pod, or knows what training is.
"""
