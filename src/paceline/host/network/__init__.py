"""The machine's network: netlink, nftables, network namespaces, the pod bridge.

In     the pods' addresses and the ports to expose.
Out    namespaces, routes, firewall rules and sockets.
Never  leaves anything behind after `paceline down`.
"""
