"""What installs Paceline in a Kubernetes cluster: CRDs, permissions, controllers and the web console.

In     values that an administrator chose, for `paceline kube install` or for the Helm chart.
Out    manifests, printed or applied; the chart is generated from the same templates (`tools/charts.py`).
Never  replaces a CRD of someone else, or a newer one.
"""
