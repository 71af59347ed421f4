"""The steps of a pod, each in a module that is loaded when it is asked for: a clone needs no buckets.

In     the words of one step, its secret, and a voice.
Out    a sentence about what was done; Stopped when it could not be.
Never  loads what only other steps need.
"""
