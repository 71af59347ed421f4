"""Use over time: what every container, pod and the node used, kept in ring files and served as series.

In     measurements, every five seconds; requests of the API server.
Out    a ring file per container in the pod's folder; JSON.
Never  measures, or decides how long files of deleted pods are kept.
"""
