"""From a manifest or a script to an object in the cluster.

In     YAML, files, folders with code.
Out    created objects, or every fault before anything is sent.
Never  leaves a manifest half created.
"""
