"""Stores every object durably, with ordered revisions.

In     guarded writes of opaque bytes under a key.
Out    increasing revisions, the current bytes, and a watch on all changes.
Never  looks inside the bytes, acknowledges a write that is not on disk, or knows HTTP.
"""
