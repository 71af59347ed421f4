"""A typed, synchronous interface for people's programs, and what the CLI stands on.

In     manifests as YAML, files or dicts, and the way to a cluster.
Out    jobs as values: submitted, followed, waited for, read and deleted; errors by who must act.
Never  prints, asks a person, reads a clock, or has a path to the cluster that others have not.
"""
