"""The domain: gangs, job status, interactive workloads, applications, conditions, labels.

In     typed values from kinds and controllers, status dicts from the wire.
Out    the typed model that plan decides on, and its wire form.
Never  decides, reads a clock, or knows a framework.
"""
