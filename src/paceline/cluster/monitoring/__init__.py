"""Probes and metrics of our processes.

In     the metrics that components keep, and /proc/self.
Out    /healthz, /readyz and /metrics over HTTP.
Never  changes anything.
"""
