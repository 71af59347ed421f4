"""Commands on jobs and any other objects.

In     options and arguments that click has read.
Out    calls of the SDK, and their answers through `cli/output`.
Never  imported before its command is typed.
"""
