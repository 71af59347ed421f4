//go:build tools

// Package kueue pins Kueue apart from Kubernetes, whose own libraries may be of another version.
package kueue

import (
	_ "sigs.k8s.io/kueue/cmd/kueue"
)
