"""Addresses, names and ports of pods, and the service proxy.

In     pods, Services and EndpointSlices.
Out    hosts files, resolv.conf files, forwarded ports.
Never  configures the machine itself (host does).
"""
