"""What an application says to people: its summary, its parts, its page, and the values that differ.

In     a TrainingApp with its records, jobs, pods and services.
Out    plain values for the command line, the SDK and the web console.
Never  reads from a cluster.
"""
