// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/seeded"
)

// defect is something that was wrong once, put back: the simulation must find it.
type defect struct {
	name    string
	profile string   // "": the normal mix
	source  []string // of the library: old, new, old, new
	client  []string // a file's path below client, old, new, a file's path, ...
	finds   string   // what the violation says, a regular expression
}

var defects = []defect{
	{
		name: "re-entry joins a lock that was released",
		client: []string{
			"internal/holding/holding.go", " || len(t.refs) == 0 || !h.Lease.Working(time.Now())):", "):",
		},
		profile: "brief",
		finds:   `invariant [12]:`,
	},
	{
		name:    "the expiry is set before the writes",
		profile: "brief slow functions",
		source: []string{
			"    if #cut > 0 then call('HDEL'", "    if moves then call('PEXPIREAT', key, digits(stays)) end\n    if #cut > 0 then call('HDEL'",
			"    if moves then call('PEXPIREAT', key, digits(stays)) end\n  end\n  lock.absent", "  end\n  lock.absent",
		},
		finds: `invariant 8: .*the key has no`,
	},
	{
		name:    "a key expires in the last millisecond of its lease",
		profile: "brief early expiry",
		source: []string{
			"  local stays = max(lock.ends, lock.kept", "  local stays = max(lock.ends - 1, lock.kept",
			"    create(key, ends, 'owner', owner, 'until', ends, 'fence', digits(fence))",
			"    create(key, digits(ms(us) + ttl), 'owner', owner, 'until', ends, 'fence', digits(fence))",
			"    call('PEXPIREAT', key, text)\n  elseif", "    call('PEXPIREAT', key, digits(ends - 1))\n  elseif",
		},
		finds: `ended the lease of .* early`,
	},
	{
		name:    "a renewal that finds the lock lost is taken for done",
		profile: "brief",
		client:  []string{"internal/keeper/renew.go", "	ours := o.Yes && o.Fence == h.First", "	ours := o.Err == nil"},
		finds:   `invariant [12]:`,
	},
	{
		name:    "an expired lock is not given back",
		profile: "brief deaf",
		client: []string{
			"internal/keeper/renew.go", "		case lease.Expire, lease.GiveBack:", "		case lease.GiveBack:",
			"lock.go", "			c.queues.GiveUp(t)\n", "",
		},
		finds: `invariant 8: .*nobody there wants`,
	},
	{
		name:    "giving up ends at the first error",
		profile: "brief",
		client: []string{
			"internal/keeper/undo.go", "	case (o.Err != nil || o.Spent) && now.Before(u.Until) && !u.over:", "	case o.Err != nil && u.Until.IsZero():",
		},
		finds: `invariant 8: .*nobody there wants`,
	},
	{
		name:    "Release returns nil after a refusal",
		profile: "refused releases",
		client: []string{
			"internal/keeper/release.go", "u.unknown, u.Done = fcall.Unknown(err), ", "u.unknown, u.Done = true, ",
		},
		finds: `Release of .* returned nil`,
	},
	{
		name:    "a minimum ends with the release",
		client:  []string{"internal/keeper/undo.go", "		c.Verb = fcall.Release\n", "		c.Verb = fcall.Leave\n"},
		profile: "brief",
		finds:   `invariant 9:`,
	},
	{
		name:    "a young memory grants guarded locks",
		profile: "brief guarded",
		source:  []string{"  if closed > 0 then return nil end\n", ""},
		finds:   `invariant 1:`,
	},
	{
		name:    "a token that no majority knows is enough",
		profile: "brief quorum",
		client:  []string{"quorum/votes.go", "	return token > 0 && nth(p.yes, fence, len(p.yes)-p.need+1) >= token", "	return token > 0"},
		finds:   `invariant 3:`,
	},
	{
		name:    "half of the votes are enough",
		profile: "brief quorum",
		client:  []string{"quorum/servers.go", "need: members/2 + 1,", "need: members / 2,"},
		finds:   `invariant 1: .* enters `,
	},
	{
		name:    "a limit is one more",
		profile: "brief",
		source:  []string{"lock.taken < min(w.limit, MAX_HOLDERS)", "lock.taken <= min(w.limit, MAX_HOLDERS)"},
		finds:   `invariant 1: .* enters beside more`,
	},
	{
		name:    "one shares what another has alone",
		profile: "brief",
		source:  []string{"  if lock.foreign or lock.ends > 0 or ms", "  if lock.foreign or lock.ends > 0 and w.limit ~= SHARED or ms"},
		finds:   `invariant [12]:`,
	},
	{
		name:    "a slot is not free when its lease ends",
		profile: "brief",
		source:  []string{"  if lock.taken == 0 or now < lock.first then return end\n", "  if true then return end\n"},
		finds:   `invariant [58]:`,
	},
	{
		name:    "who fits overtakes the line",
		profile: "brief",
		source:  []string{"ms(us) < lock.kept or has_line(lock) or not", "ms(us) < lock.kept or not"},
		finds:   `invariant 10:`,
	},
	{
		name:    "a grant does not say which slot",
		profile: "brief",
		client:  []string{"internal/queue/entry.go", "		g.Slot, g.Top = int(a.Top-a.Token+1), a.Token\n", "		g.Slot, g.Top = 1, a.Token\n"},
		finds:   `invariant 1: .* enters while`,
	},
	{
		name:    "readers are upgraded",
		profile: "brief",
		client:  []string{"acquire.go", "	if has.Crowd != 0 && cmp", "	if has.Crowd > 1000 && cmp"},
		finds:   `invariant 7: .* wants it alone`,
	},
	{
		name:    "a lock that is kept with a value is handed on",
		profile: "brief values",
		source:  []string{"  if ms(us) < lock.kept then return end\n", ""},
		finds:   `invariant 11: .* makes a value`,
	},
	{
		name:    "the interval of a value begins at its end",
		profile: "brief values",
		client:  []string{"value.go", "every) - time.Since(lock.holder.Began)", "every)"},
		finds:   `invariant 11: .* too long`,
	},
	{
		name:    "a value is remembered for ever",
		profile: "brief values",
		client:  []string{"value.go", "lease.Past(time.Now(), v.done", "lease.Past(v.done.Since, v.done"},
		finds:   `invariant 11: .* which was over`,
	},
	{
		name:    "a value whose lock was lost is given to others",
		profile: "brief values",
		client:  []string{"value.go", "	if err == nil {\n		done =", "	if lock.holder.Final != nil {\n		done ="},
		finds:   `invariant 11: .* whose call failed`,
	},
	{
		name:    "MaxWait begins anew behind another goroutine",
		profile: "values",
		client:  []string{"value.go", "c.Acquire(wait, name, opts...)", "c.Acquire(ctx, name, opts...)"},
		finds:   `invariant 6: .*value of .* after its context`,
	},
	{
		name:    "a value is released, and not kept",
		profile: "brief values",
		client:  []string{"internal/keeper/release.go", "	u.Final = h.Final\n", ""},
		finds:   `invariant 11: .* does not have the value`,
	},
}

// TestDefectsAreFound puts each defect back and runs schedules until one finds it, for
// HOLDFAST_DEFECTS (default 8m) at the most, in HOLDFAST_PROCESSES processes.
func TestDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the client several times")
	}
	limit := seeded.Setting(t, "HOLDFAST_DEFECTS", 8*time.Minute, time.ParseDuration)
	for _, d := range defects {
		t.Run(strings.ReplaceAll(d.name, " ", "-"), func(t *testing.T) {
			binary, source := patched(t, t.TempDir(), d)
			began := time.Now()
			s := &series{binary: binary, job: job{Seed: 1, End: math.MaxUint64, Until: began.Add(limit), Profile: d.profile, Source: source,
				First: true, Finds: d.finds}}
			s.play(t.Context(), processes(t))
			r, took := s.total, time.Since(began).Round(time.Millisecond)
			if len(r.Broken) == 0 {
				t.Fatalf("not found in %d schedules and %v\n%s", r.Schedules, took, strings.Join(s.crashes, "\n"))
			}
			// It is the defect that was found: without it the same schedule is clean.
			seed := r.Broken[0].Seed
			clean := &series{job: job{Seed: seed, End: seed + 1, Profile: d.profile, Finds: d.finds}}
			clean.simulate(t, always)
			t.Logf("found after %d schedules and %v, by %q: invariant %d: %s", r.Schedules, took, d.profile, r.Broken[0].Invariant, r.Broken[0].Text)
		})
	}
}

// patched returns a test binary with the defect in the client, and a file with the library that has
// it; "" for one that has none.
func patched(t *testing.T, dir string, d defect) (binary, source string) {
	t.Helper()
	if len(d.source) > 0 {
		source = filepath.Join(dir, "holdfast.lua")
		write(t, source, seeded.Text(t, functions.Source, d.source...))
	}
	if len(d.client) == 0 {
		return "", source
	}
	texts := map[string]string{}
	for change := range slices.Chunk(d.client, 3) {
		file := change[0]
		texts[file] = seeded.Text(t, cmp.Or(texts[file], read(t, file)), change[1:]...)
	}
	return compile(t, dir, texts), source
}

// root is the folder of the client.
const root = "../../.."

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compile makes a test binary in which files of the client have other texts.
func compile(t *testing.T, dir string, texts map[string]string) string {
	t.Helper()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for file, text := range texts {
		path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		overlay.Replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		write(t, overlay.Replace[path], text)
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

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
