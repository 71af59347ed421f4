"""Runs the web console: with the first connection to the embedded cluster's port, or in the foreground.

In     settings or a kubeconfig, and a listening socket.
Out    a process that serves paceline.console, and ends when no page is open.
Never  runs before the console is opened.
"""
