"""Everything the command prints: tables, describe, progress, logs, formats.

In     values from the SDK.
Out    text for a terminal or a pipe, without control characters of others.
Never  talks to a cluster.
"""
