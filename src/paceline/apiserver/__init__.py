"""The Kubernetes REST API over a store.

In     HTTP requests of kubectl, controllers, the agent and people, each with a token.
Out    objects, tables, watch streams, and Status bodies that say who must act.
Never  decides what a job does, runs a pod, or knows what training is.
"""
