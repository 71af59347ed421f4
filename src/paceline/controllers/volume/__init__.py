"""Claims: binding and provisioning.

In     claims, volumes and storage classes.
Out    bound claims and provisioned volumes.
Never  touches a file.
"""
