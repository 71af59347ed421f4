"""The controllers beside a server in whose pods nothing runs: the test plays scheduler and kubelet."""
