"""The steps of a pod, each in a module that is loaded when it is asked for.

In     the arguments of one step, its secret, and a reporter.
Out    a sentence about what was done; an error when it could not be.
Never  loads what only other steps need.
"""
