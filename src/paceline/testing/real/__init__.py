"""Real Kubernetes parts for tests: kube-apiserver, kubelet, images.

In     the folder with the built programs.
Out    running servers and nodes.
Never  downloads anything.
"""
