"""Pure decisions: a view of the cluster and the time in, a plan out.

In     snapshots, all read before the call.
Out    plans: the status to write, objects to delete and create, events, when to look again.
Never  awaits, logs, reads a clock, or knows that a server exists.
"""
