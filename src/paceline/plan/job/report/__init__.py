"""What a job's status says: conditions, replica statuses, reasons, events.

In     the view of one job and what was decided.
Out    parts of its status, and events.
Never  decides what runs.
"""
