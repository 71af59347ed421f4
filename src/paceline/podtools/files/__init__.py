"""The file server of a volume: its files and its training curves; standard library only.

In     HTTP requests with the token of its Secret; the folder that the volume is mounted at.
Out    files and JSON.
Never  follows a link out of the volume, or believes what an event file says about itself.
"""
