"""A pod of the embedded cluster does what a pod of a real kubelet does.

In     cases: a pod, what else is there, what to wait for (the format: tests/conformance/table.py).
Out    answers taken from a real kubelet, and a test that asks the embedded cluster the same.
Never  an expected answer written by hand: `make conformance` asks the original.
"""
