"""Paceline runs distributed training jobs on one machine or on Kubernetes, with the same YAML.

In     what a person wrote: YAML, a command, a call of the SDK.
Out    the public names of the SDK, and nothing else.
Never  starts anything on import.
"""
