"""Run one container: shim, zygote, sandbox, cgroup, log, exec.

In     an intent file, written by the agent.
Out    a process, its log in CRI format, and its exit record.
Never  imports more than the standard library in the shim.
"""
