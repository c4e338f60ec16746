// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/seeded"
)

const always = 1000 * time.Hour

// TestSimulation plays schedules from HOLDFAST_SEED on (default: by the time): for HOLDFAST_SIMULATE (default
// 10s), or only HOLDFAST_SCHEDULES of them. They are of HOLDFAST_PROFILE, and HOLDFAST_PROCESSES (default: one
// for each CPU) play them. An interrupt ends it.
//
// One schedule is replayed with its seed and HOLDFAST_SCHEDULES=1; HOLDFAST_TRACE is a file for all its
// events. The same seed is the same scenario, and where two things happen at one instant the runtime
// chooses: -count=10 -failfast tries it again.
func TestSimulation(t *testing.T) {
	began, profile := time.Now(), os.Getenv("HOLDFAST_PROFILE")
	first, count := seeded.Setting(t, "HOLDFAST_SEED", uint64(began.UnixMilli()), seeded.Number), seeded.Setting(t, "HOLDFAST_SCHEDULES", 0, seeded.Number)
	s := &series{job: job{Seed: first, End: math.MaxUint64, Profile: profile}}
	limit := seeded.Setting(t, "HOLDFAST_SIMULATE", 10*time.Second, time.ParseDuration)
	if count > 0 {
		s.End, limit = first+count, always
	}
	s.simulate(t, limit)
	t.Logf("%q, seeds %d to %d, %d processes, %v\n%v", profile, first, s.Seed-1, processes(t), time.Since(began).Round(time.Millisecond), s.total)
}
