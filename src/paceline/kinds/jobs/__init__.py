"""The job kinds, one file each, and what several of them share.

In     the spec of one job, as written.
Out    every fault in it; or the Gang that runs it.
Never  knows another kind.
"""
