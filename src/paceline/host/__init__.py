"""The operating system: files, processes, cgroups, mounts, sockets.

In     calls through the protocols of `paceline.effects`.
Out    what the real machine answered; OS errors translated where they enter.
Never  decides anything, or talks to the API.
"""
