"""Output files of jobs.

In     a job, its upload log, its mounted volumes.
Out    names, sizes and locations of files.
Never  downloads without being asked.
"""
