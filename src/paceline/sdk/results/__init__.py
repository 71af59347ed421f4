"""Files that a job left in its output.

In     a job, its upload log, its mounted volumes.
Out    names, sizes and places of files.
Never  downloads without being asked.
"""
