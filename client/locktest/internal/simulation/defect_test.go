package simulation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// defect is something that was wrong once, put back: the simulation must find it.
type defect struct {
	name    string
	profile string            // "": the normal mix
	source  []string          // of the library: old, new, old, new
	client  map[string]string // by the file's path below client: 'old' + separator + 'new', ...
	finds   string            // what the violation says, a regular expression
}

const becomes = "\n=>\n"

var defects = []defect{
	{
		name:    "a grant is published before anybody asked who hears it",
		profile: "failovers",
		source: []string{
			"  return subscribers(waiter.channel) > 0\n", "  return true\n",
			"if type(told) == 'number' then return end", "if type(told) == 'number' and told > 0 then return end",
		},
		finds: `invariant [12]:`,
	},
	{
		name:    "a lease shrinks under another hold",
		profile: "shared",
		source:  []string{"if lock.holds == 0 or ends > lock.ends then lock.ends = ends end", "lock.ends = ends"},
		finds:   `invariant 2:.*own-`,
	},
	{
		name:    "a plain lock can be joined",
		profile: "strangers",
		source: []string{
			"  if joinable ~= (hold ~= '') then join_error(joinable) end\n  keep_to(lock, guard, ttl)\n",
			"  keep_to(lock, guard, ttl)\n",
		},
		finds: `invariant [123]:`,
	},
	{
		name:    "a lease leaves the heap",
		profile: "deadlines",
		client: map[string]string{
			"keepalive.go": "			return k.queue[0], 0" + becomes + "			return heap.Pop(&k.queue).(*entry), 0",
			"keepalive.go#2": `	if send := e.timed.step(now); send != nil {
		k.flights.add(send)
	}
	k.update(e)` + becomes + `	send := e.timed.step(now)
	if send != nil {
		k.flights.add(send)
	}
	h := e.timed.(*held)
	h.mu.Lock()
	over := h.tenure == nil || h.tenure.cause != nil || h.machine.State() > 1 // held
	h.mu.Unlock()
	k.mu.Lock()
	out := e.index < 0
	if out && (send != nil || over) { // else it is good, and nobody puts it back
		if e.due = e.timed.next(); e.due.IsZero() {
			k.settled()
		} else {
			heap.Push(&k.queue, e)
		}
	}
	k.mu.Unlock()
	if !out {
		k.update(e)
	}`,
			// The window is some instructions long. Virtual time needs one.
			"lock.go": "	ours := h.extended(sent, length, err == nil, r.Yes && r.Fence == h.first)\n" + becomes +
				"	ours := h.extended(sent, length, err == nil, r.Yes && r.Fence == h.first)\n	time.Sleep(100 * time.Microsecond)\n",
		},
		finds: `invariant [12]:`,
	},
	{
		name: "re-entry joins a lock that was released",
		client: map[string]string{
			"internal/lease/answer.go": "	if l.holders == 0 || !l.Working(now) {\n		return false\n	}\n	l.holders++" + becomes + "	l.holders++",
		},
		finds: `invariant [12]:`,
	},
	{
		name:    "a grant older than the answer is believed",
		profile: "breaks",
		client:  map[string]string{"wait.go": "	if g.Fence <= r.Fence || w.hold != \"\" || w.client.quorum != nil {" + becomes + "	if w.hold != \"\" {"},
		finds:   `invariant [12]:`,
	},
	{
		name:    "the expiry is set before the writes",
		profile: "slow functions",
		source: []string{
			"  local set, cut = {}, {}\n", "  local expires = expiry(lock, ms(us))\n  if expires ~= lock.expires then\n" +
				"    call('PEXPIREAT', key, digits(expires))\n    lock.expires = expires\n  end\n  local set, cut = {}, {}\n",
		},
		finds: `invariant 8: .*the key has no`,
	},
	{
		name:    "a key expires in the last millisecond of its lease",
		profile: "early expiry",
		source:  []string{"  return lock.ends + 1\n", "  return lock.ends\n", "digits(ends + 1)", "digits(ends)"},
		finds:   `ended the lease of .* early`,
	},
	{
		name:    "an expired lock is not given back",
		profile: "deaf",
		client: map[string]string{
			"internal/lease/state.go": "	Held:       {Held, Refused, Stopping, GivingBack, GivingBack," + becomes + "	Held:       {Held, Refused, Stopping, Left, GivingBack,",
		},
		finds: `invariant 8: .*nobody there wants`,
	},
	{
		name:    "giving up ends at the first error",
		profile: "lost answers",
		client: map[string]string{
			"held.go": "	case !answered:\n		h.machine.Failed(action, time.Now())" + becomes + `	case !answered && action == lease.GiveBack:
		h.machine.GaveBack()
	case !answered:
		h.machine.Failed(action, time.Now())`,
		},
		finds: `invariant 8: .*nobody there wants`,
	},
	{
		name:    "Release returns nil after a refusal",
		profile: "refused releases",
		client:  map[string]string{"release.go": "unknown = unknown || fcall.Unknown(err)" + becomes + "unknown = unknown || err != nil"},
		finds:   `Release of .* returned nil`,
	},
	{
		name:    "too few replicas are enough",
		profile: "replicated",
		client: map[string]string{
			"internal/fcall/copies.go": "	if err == nil && acked >= int64(copies.Replicas) {" + becomes + "	if err == nil {",
		},
		finds: `invariant [12]:`,
	},
	{
		name:    "what the line gives is not confirmed by replicas",
		profile: "replicated",
		client: map[string]string{
			"wait.go":   "		case r.Yes && w.set.terms.copies.Replicas > 0:" + becomes + "		case r.Yes && w.hold == \"none\":",
			"wait.go#2": " || w.set.terms.copies.Replicas > 0 || left" + becomes + " || left",
		},
		finds: `invariant [12]:`,
	},
	{
		name:    "a young memory grants guarded locks",
		profile: "guarded",
		source:  []string{"if closed > 0 then return { 0, closed, '', 0 } end", ""},
		finds:   `invariant 1:`,
	},
	{
		name:    "a young memory hands guarded locks over",
		profile: "guarded",
		source:  []string{"lock.closed = has_line(lock) and too_young(lock.guard, us) or 0", "lock.closed = 0"},
		finds:   `invariant 1:`,
	},
	{
		name:    "the second round raises nothing",
		profile: "quorum",
		source:  []string{"if raised and raised > lock.fence then", "if false then"},
		finds:   `invariant 3:`,
	},
	{
		name:    "a server votes before it is old enough",
		profile: "quorum",
		source:  []string{"return math.max(0, guard - ms(age(us)))", "return 0"},
		finds:   `invariant [13]: .* enters `,
	},
	{
		name:    "a server votes twice",
		profile: "quorum",
		source: []string{"  if not lock then return take(key, us, owner, ttl, block, hold, '', guard, closed) end",
			"  if not held_by(lock, owner) then return take(key, us, owner, ttl, block, hold, '', guard, closed) end"},
		finds: `invariant 1: .* enters `,
	},
	{
		name:    "half of the votes are enough",
		profile: "quorum",
		client:  map[string]string{"internal/quorum/servers.go": "need: len(members)/2 + 1," + becomes + "need: len(members) / 2,"},
		finds:   `invariant 1: .* enters `,
	},
}

// TestDefectsAreFound puts each defect back and runs schedules until one finds it, for
// HOLDFAST_DEFECTS (default 8m) at the most, in HOLDFAST_PROCESSES processes. With HOLDFAST_PROFILE
// it looks for all of them in that way, and need not find them: that tells what a profile is worth.
// A '*' in it stands for the level that the defect is of, as in "brief *".
func TestDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the client several times")
	}
	limit := length(t, "HOLDFAST_DEFECTS", 8*time.Minute)
	other, tries := os.LookupEnv("HOLDFAST_PROFILE")
	for _, d := range defects {
		if tries {
			d.profile = strings.ReplaceAll(other, "*", level(d.profile))
		}
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			binary, source := patched(t, dir, d)
			began := time.Now()
			j := job{Seed: 1, Until: began.Add(limit), Profile: d.profile, Source: source, First: true, Finds: d.finds}
			r, crashes := simulate(binary, j, processes(t))
			took := fmt.Sprintf("%.1f s of CPU time, %v", r.CPU.Seconds(), time.Since(began).Round(time.Millisecond))
			if len(r.Broken) == 0 && tries {
				t.Skipf("not found in %d schedules and %s", r.Schedules, took)
			}
			if len(r.Broken) == 0 {
				t.Fatalf("not found in %d schedules and %s\n%s", r.Schedules, took, strings.Join(crashes, "\n"))
			}
			profile := d.profile
			if profile == "" {
				profile = "the normal mix"
			}
			t.Logf("found after %d schedules and %s, by %s: invariant %d: %s", r.Schedules, took, profile, r.Broken[0].Invariant, r.Broken[0].Text)
		})
	}
}

// level is the level of a profile.
func level(profile string) string {
	switch profile {
	case "replicated", "guarded", "quorum":
		return profile
	}
	return "default"
}

// patched returns a test binary with the defect in the client, and a file with the library that has
// it.
func patched(t *testing.T, dir string, d defect) (binary, source string) {
	t.Helper()
	if len(d.source) > 0 {
		text := functions.Source
		for i := 0; i < len(d.source); i += 2 {
			text = replace(t, "the library", text, d.source[i], d.source[i+1])
		}
		source = filepath.Join(dir, "holdfast.lua")
		write(t, source, text)
	}
	if len(d.client) == 0 {
		binary, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return binary, source
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range sorted(d.client) {
		file, _, _ := strings.Cut(name, "#")
		path := filepath.Join(root, filepath.FromSlash(file))
		if texts[path] == "" {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(b)
		}
		before, after, _ := strings.Cut(d.client[name], becomes)
		texts[path] = replace(t, file, texts[path], before, after)
	}
	return compile(t, dir, texts), source
}

func compile(t *testing.T, dir string, texts map[string]string) string {
	t.Helper()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range texts {
		other := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		write(t, other, text)
		overlay.Replace[path] = other
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), string(b))
	binary := filepath.Join(dir, "simulation.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return binary
}

func replace(t *testing.T, name, text, before, after string) string {
	t.Helper()
	if strings.Count(text, before) != 1 {
		t.Fatalf("%s has %q %d times, not once: the defect must be put back in another way", name, before, strings.Count(text, before))
	}
	return strings.Replace(text, before, after, 1)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// matching drops the violations that do not say what is looked for.
func matching(finds string, text string) bool {
	return finds == "" || regexp.MustCompile(finds).MatchString(text)
}
