"""Stops 2 and 7 of 8: keep every object, in order, for good.

In     guarded writes of opaque bytes under a key.
Out    revisions that only grow, the current bytes, and a feed of what changed.
Never  looks inside the bytes, acknowledges what is not on disk, or knows that HTTP exists.
"""
