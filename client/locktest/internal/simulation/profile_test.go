package simulation_test

import (
	"os"
	"testing"
	"time"
)

// TestProfilesAreClean runs the mixes by which defects are found on the real code: they must find
// nothing there. HOLDFAST_PROFILES is how long each of them runs.
func TestProfilesAreClean(t *testing.T) {
	length := length(t, "HOLDFAST_PROFILES", 2*time.Second)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range defects {
		if d.profile == "" {
			continue
		}
		t.Run(d.profile, func(t *testing.T) {
			finds := ""
			if d.profile == "slow functions" { // time that stands still for all others goes on there: leases end early
				finds = d.finds
			}
			r, crashes := simulate(binary, job{Seed: 1, Until: time.Now().Add(length), Profile: d.profile, Finds: finds}, processes(t))
			t.Logf("%v", r)
			for _, v := range r.Broken {
				t.Errorf("%v", v)
			}
			for _, c := range crashes {
				t.Errorf("%s", c)
			}
		})
	}
}
