"""Stop 4 of 8: decide what should happen to a job.

In     `Seen`: the gang, its pods, the last status, all read before the call.
Out    `Plan`: the status to write, pods to delete and create, events to tell, when to look again.
Never  awaits, logs, reads a clock, or knows that a server exists.
"""
