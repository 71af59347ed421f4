"""kubectl says the same on the embedded cluster as on a real one.

In     cases: what is there, and a command line.
Out    recordings taken from a real Kubernetes, and a test that replays each on ours.
Never  an expectation written by hand: `make recordings` asks the original.
"""
