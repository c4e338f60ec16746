package simulation

import (
	"math/rand/v2"
	"testing"
)

// Brief schedules are of all levels, each of their deeds and faults is left out and likely in some,
// and what a level excludes stays out.
func TestBriefSchedulesAreOfAllKinds(t *testing.T) {
	drawn, left, likely := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := range uint64(2000) {
		p, err := mixOf("brief", rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			t.Fatal(err)
		}
		drawn[p.level()]++
		if p.deeds["acquire"] == 0 {
			t.Fatalf("seed %d: nobody acquires", seed)
		}
		if p.guard > 0 && p.deeds["stranger"] > 0 || p.level() == "quorum" && p.faults["forced failover"] > 0 {
			t.Fatalf("seed %d: the level %s excludes what is in %v and %v", seed, p.level(), p.deeds, p.faults)
		}
		for name, n := range p.faults {
			if n == 0 {
				left[name]++
			} else if n >= 40 {
				likely[name]++
			}
		}
	}
	for _, level := range []string{"default", "replicated", "guarded", "quorum"} {
		if drawn[level] < 100 {
			t.Errorf("%d of 2000 are of the level %s", drawn[level], level)
		}
	}
	for _, f := range append(networkFaults[:len(networkFaults):len(networkFaults)], serverFaults...) {
		if left[f.name] == 0 || likely[f.name] == 0 {
			t.Errorf("%s is left out of %d, and likely in %d", f.name, left[f.name], likely[f.name])
		}
	}
	if _, err := mixOf("brief nonsense", rand.New(rand.NewPCG(1, 0))); err == nil {
		t.Error("there is no such profile")
	}
}
