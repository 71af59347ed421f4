"""Composition and administration: settings in, running processes out.

In     settings (environment, flags, a folder) and the real machine.
Out    the control plane process, the node agent process, their files, certificates and sockets.
Never  decides anything about a job, or is imported by anything but the CLI and tests.
"""
