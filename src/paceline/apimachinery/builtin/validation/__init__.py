"""Validation of the built-in kinds, one module per kind or theme.

In     an object of a built-in kind, and the old one on update.
Out    field errors with path, value and message.
Never  changes the object.
"""
