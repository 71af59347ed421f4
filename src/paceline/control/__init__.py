"""Stop 5 of 8: loops that look, decide, and carry out.

In     caches that follow the cluster, and the clock.
Out    one guarded status write per pass, then pods deleted and made, then events.
Never  decides by itself (plan/ does), remembers what a restart would lose, or talks to a node.
"""
