"""Beside the road: small trainers that are shipped, so that the first training needs no download.

In     the environment and flags of a replica.
Out    progress on stdout, event files and a checkpoint in the log folder.
Never  imports anything but the standard library: the file travels alone into any image with Python.
"""
