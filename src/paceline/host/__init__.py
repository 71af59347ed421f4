"""The operating system under files that other people's programs can change: handles, and walks by handle.

In     a folder, and a path or a whole tree beneath it that a container may be changing at this moment.
Out    a handle of what lies there, or the work done on it; OSError when the path leads out of the folder.
Never  looks up the same name twice, follows a link out of the folder, or knows what the files are for.
"""
