"""Older T9k shapes, turned into the current one when they are read.

In     a spec as somebody wrote it years ago.
Out    the same spec in the current shape, and warnings for its author.
Never  changes what is stored.
"""
