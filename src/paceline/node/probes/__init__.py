"""Startup, liveness and readiness probes.

In     probe specs and running containers.
Out    results, and the workers that repeat them.
Never  restarts a container.
"""
