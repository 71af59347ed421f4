"""Files and training curves of claims, through their Explorers.

In     requests of the page; the person's own rights in the cluster.
Out    what the Explorer of a claim answers: JSON, and files as downloads.
Never  lets a browser have the token of an Explorer, or render a file in the console's origin.
"""
