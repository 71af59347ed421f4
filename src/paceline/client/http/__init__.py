"""HTTP/1.1 to a cluster: connections, TLS, reverse proxy, exec streams.

In     requests with their addresses and credentials.
Out    responses, streams and errors by who must act.
Never  knows a kind.
"""
