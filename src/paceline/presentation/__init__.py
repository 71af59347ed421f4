"""What objects tell people: the facts and sentences that the CLI, the SDK and the console share.

In     objects as the API returns them, and the time.
Out    summaries, replicas, progress, copies of jobs, and the actions that are possible with their consequences.
Never  reads a clock, prints, talks to a cluster, or decides what a controller does.
"""
