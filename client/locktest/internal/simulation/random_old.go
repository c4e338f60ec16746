// SPDX-License-Identifier: Apache-2.0

//go:build !go1.26

package simulation

import "testing"

// seedRandom does nothing: before Go 1.26 the same seed is the same scenario, and rarely the same
// trace.
func seedRandom(*testing.T, uint64) {}
