// SPDX-License-Identifier: Apache-2.0

//go:build go1.26

package simulation

import (
	"testing"
	"testing/cryptotest"
)

// seedRandom makes owner strings and the clients' jitter come from the seed.
func seedRandom(t *testing.T, seed uint64) { cryptotest.SetGlobalRandom(t, seed) }
