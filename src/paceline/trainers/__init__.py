"""Beside the road: small bundled trainers, so that a first training needs no download.

In     the environment and flags of a replica.
Out    progress on stdout, event files and a checkpoint in the log directory.
Never  imports anything but the standard library: the file alone is mounted into any image with Python.
"""
