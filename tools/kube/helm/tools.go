//go:build tools

// Package helm pins Helm apart from Kubernetes, whose own libraries may be of another version.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
