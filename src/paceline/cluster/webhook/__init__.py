"""The validating webhook of our kinds, for clusters whose API server is not ours.

In     AdmissionReviews of a real API server.
Out    the faults that the embedded API server would report, in the same form; warnings about old shapes.
Never  blocks a deletion or a status, asks another server, or changes an object.
"""
