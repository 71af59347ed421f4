"""Jobs on a real Kubernetes with two nodes: `make test-kube`."""
