"""Volumes of pods: where they lie, what is projected into them, their clean-up.

In     pods, claims, volumes, ConfigMaps and Secrets.
Out    folders and mounts for the sandbox.
Never  leaves its own folders.
"""
