"""For tests, ours and other people's: simulated worlds, real servers, contract suites.

In     a seed, a folder, or the assets of a real Kubernetes.
Out    worlds that obey slowly and wrongly, clusters to talk to, suites that every implementation must pass.
Never  is imported by the product.
"""
