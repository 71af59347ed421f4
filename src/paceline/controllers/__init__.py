"""Reconcile loops: read a snapshot, decide, apply the plan.

In     caches that follow the cluster, and the clock.
Out    one guarded status write per pass, then pods deleted and created, then events.
Never  decides by itself (plan/ does), remembers what a restart would lose, or talks to a node.
"""
