"""Managed fields and server-side apply, as structured-merge-diff does them.

In     live objects, applied configurations and their managed fields.
Out    the merged object, its new managed fields, or the conflicts.
Never  knows a kind: schemas are arguments.
"""
