"""What a tab subscribes to: rows, objects, views and logs.

In     requests of a tab, and lists, watches and logs of the cluster, read as the person.
Out    messages of `/api/live`, gathered, bounded, and resumed after a break.
Never  shares what one person reads with another, or holds more for a slow tab than its limit.
"""
