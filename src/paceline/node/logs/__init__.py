"""Container logs: reading, rotation, the archive of deleted pods, retention.

In     log files that shims write.
Out    lines for readers; archived logs; termination messages.
Never  reads without a bound.
"""
