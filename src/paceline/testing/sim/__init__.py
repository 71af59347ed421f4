"""A simulated machine and cluster: virtual time, crashes, lossy networks, invariants.

In     a seed and a number of events.
Out    a trace, and the first invariant that broke.
Never  uses the real clock or a real process.
"""
