"""A typed, synchronous Python interface, which the CLI is built on.

In     manifests as YAML, files or dicts, and a connection to a cluster.
Out    handles to jobs: submit, follow, wait, read and delete; errors that say who must act.
Never  prints, prompts, reads a clock, or uses anything but the public API of the cluster.
"""
