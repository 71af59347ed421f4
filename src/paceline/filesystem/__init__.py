"""Paths and trees that containers can write to, by handle; standard library only.

In     a folder and a path beneath it.
Out    handles; trees removed, measured, or with another group.
Never  follows a link out of the folder.
"""
