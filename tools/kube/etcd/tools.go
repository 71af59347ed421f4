//go:build tools

// Package etcd pins etcd apart from Kubernetes, whose own etcd libraries are of another version.
package etcd

import (
	_ "go.etcd.io/etcd/server/v3"
)
