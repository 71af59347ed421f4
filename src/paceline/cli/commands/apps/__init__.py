"""Commands on applications, templates, volumes and code repositories.

In     options and arguments that click has read.
Out    calls of the SDK, and their answers through `cli/output`.
Never  imported before its command is typed.
"""
