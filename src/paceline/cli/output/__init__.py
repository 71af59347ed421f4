"""Everything the command prints: tables, describe, progress, logs, formats.

In     values from the SDK.
Out    text for a terminal or a pipe, with untrusted control characters removed.
Never  talks to a cluster.
"""
