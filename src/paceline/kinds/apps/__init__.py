"""TrainingApp and JobRecord.

In     the spec of one application or record.
Out    every fault in it; or the job of its next revision.
Never  creates an object.
"""
