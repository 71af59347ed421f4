//go:build tools

// Package metrics pins the metrics server that answers `kubectl top` on a real node.
package metrics

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
