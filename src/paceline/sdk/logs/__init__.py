"""Logs of jobs: live, archived, merged by time.

In     pods and their log streams.
Out    lines in order, with the replica that wrote them.
Never  prints.
"""
