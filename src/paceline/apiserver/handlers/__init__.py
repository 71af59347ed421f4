"""The verbs and subresources, one module each.

In     an authorized request.
Out    a response or a stream.
Never  authenticates a caller, or parses HTTP.
"""
