"""The kubelet-shaped API of the node agent: log, exec, stats, archived logs.

In     requests of the API server over a socket file.
Out    streams and JSON.
Never  listens on a network.
"""
