"""Templates of applications: values that a person fills in, and the job they become.

In     a tree of values, as a values file, a chart or a form gives it.
Out    every fault in it; or a job of some kind, with the claims and the TensorBoard it needs.
Never  creates an object, reads a file, or knows another template.
"""
