//go:build tools

// Package schedulerplugins pins the scheduler of scheduler-plugins, which starts all pods of a PodGroup or none.
package schedulerplugins

import (
	_ "sigs.k8s.io/scheduler-plugins/cmd/scheduler"
)
