"""The commands, one file each; they are loaded when they are typed.

In     options and arguments that click has read.
Out    calls of the SDK, and their answers through `cli/output`.
Never  imported before its command is typed, so that no command pays for another.
"""
