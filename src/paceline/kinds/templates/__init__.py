"""Stop 1 of 8, one step before: templates, which create a job from values that a user sets.

In     a tree of values, from a values file, a chart or a form.
Out    all its faults; or a job of some kind, with the claims and the TensorBoard that it needs.
Never  creates an object, reads a file, or knows another template.
"""
