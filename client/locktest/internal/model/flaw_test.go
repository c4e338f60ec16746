// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/seeded"
)

// flawed is a rule that is broken on purpose, of the clients or in the library, and what must be found then.
type flawed struct {
	name   string
	finds  Invariant
	change []func(*Config)
	source []string // of the library: old, new, old, new
}

func flaw(f Flaw) func(*Config) { return func(c *Config) { c.Flaw = f } }
func believes(c *Config)        { c.Belief = c.Lease + 1 }

var flaws = []flawed{
	{"WAIT's answer is not looked at", Exclusion, []func(*Config){flaw(UnseenAcks), fails(Promotion), replicas}, nil},
	{"no confirmation before it counts", Exclusion, []func(*Config){flaw(NoConfirm), fails(Promotion), replicas}, nil},
	{"deadline counted from the reply", Exclusion, []func(*Config){flaw(LateDeadline)}, nil},
	{"deadline after the server's", Exclusion, []func(*Config){believes}, nil},
	{"one owner string for all acquisitions", Exclusion, []func(*Config){flaw(SharedOwner), strays(1)}, nil},
	{"old messages are believed", Exclusion, []func(*Config){flaw(OldNotes), breaks}, nil},
	{"renewals without a hold", Exclusion, []func(*Config){flaw(Unnamed), joint, guarded(2)}, nil},

	{"release without a look at the owner", Ownership, nil, []string{
		"  local mine = holder(lock, us, owner)\n  if not mine or hold and lock.holds == 0 then\n    commit(lock, us)\n", "  local mine = lock\n  if not mine or hold and lock.holds == 0 then\n    commit(lock, us)\n",
		"  if v[1] == args[1] and (#args == 1 or", "  if v[1] and (#args == 1 or",
	}},
	{"leave without a look at the owner", Ownership, []func(*Config){odd, strays(1)}, []string{
		"  local mine = holder(lock, us, owner)\n  if mine and (not fence", "  local mine = lock.ends > 0 and lock\n  if mine and (not fence",
	}},
	{"renewal without a look at the owner", Exclusion, nil, []string{
		"  if mine and fence and fence ~= mine.fence and raise ~= mine.fence then mine = nil end",
		"  mine = lock.ends > 0 and lock",
	}},
	{"renewal without a look at the hold", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		" or not select(2, scan_holds(read_holds(lock), hold))) then\n", ") then\n",
	}},
	{"a release of one hold gives back all", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		"  if left == 0 then\n    pass_on(lock, us, used)", "  if true then\n    pass_on(lock, us, used)",
	}},
	{"a lock without an expiry", Expiry, nil, []string{
		"  local done = try('PEXPIREAT', key, expires)\n", "  local done = 1\n",
	}},
	{"acquire past the line", Order, []func(*Config){clients(3), healthy}, []string{
		"  settle(lock, us)\n  local mine, reply = try_take(",
		"  if ms(us) >= lock.ends then lock.ends = 0 end\n  local mine, reply = try_take(",
		"or ms(us) < lock.kept or has_line(lock) or not", "or ms(us) < lock.kept or not",
	}},
	{"handed over without an end", Progress, []func(*Config){watched, admit(Expiry)}, []string{
		"(lock, waiter, us, min(waiter.ttl, PROVISIONAL_MS), holds)", "(lock, waiter, us, MAX_TTL_MS, holds)",
		"now + min(w.ttl, PROVISIONAL_MS) + 1\n  local token", "now + MAX_TTL_MS + 1\n  local token",
	}},
	{"a young memory grants a free lock", Exclusion, []func(*Config){fails(Restart), guarded(2)}, []string{
		"  if closed > 0 then return nil end\n", "",
	}},
	{"a memory does not begin anew with a replication id", Exclusion, []func(*Config){fails(Promotion), guarded(2)}, []string{
		"  if id ~= history or us < born then", "  if history == '' or us < born then",
	}},
	{"a young memory grants one more hold", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		"      if lock.closed > 0 then return nil, { 0, lock.closed, lock.owner, lock.count, 'settling' } end\n", "",
	}},
}

// TestFlawsAreFound breaks one rule after the other.
func TestFlawsAreFound(t *testing.T) {
	for _, f := range flaws {
		t.Run(f.name, func(t *testing.T) {
			s := broken(f.name, f.finds, append([]func(*Config){clients(2)}, f.change...)...)
			s.source = f.source
			s.check(t)
		})
	}
}

// wrongs are changes of the library that need break no invariant where time is ticks. But what a call does is
// another thing at two moments of a tick then, or it takes a part of one, or leaves what is no lock of
// the model.
var wrongs = map[string][]string{
	"the lease ends early":              {"lock.absent or ms(us) < lock.ends then return", "lock.absent or ms(us) + 1 < lock.ends then return"},
	"the lease ends late":               {"lock.absent or ms(us) < lock.ends then return", "lock.absent or ms(us) <= lock.ends then return"},
	"busy for longer":                   {"or not ends or now >= ends then", "or not ends or now > ends then"},
	"plain renewal of an ended lease":   {"  if now >= ends or fence > us and", "  if now > ends or fence > us and"},
	"plain hand-over of an ended lease": {"not fence or now >= ends or us <= top", "not fence or now > ends or us <= top"},
	"a memory is old enough early":      {"  return max(0, guard - ms(age(us)))", "  return max(0, guard - 1 - ms(age(us)))"},
	"a memory is old enough late":       {"  return max(0, guard - ms(age(us)))", "  return max(0, guard + 1 - ms(age(us)))"},
}

func TestWrongsAreNoticed(t *testing.T) {
	kinds := map[string]func(*Config){"plain": healthy, "guarded": guarded(2)}
	for name, source := range wrongs {
		t.Run(name, func(t *testing.T) {
			for kind, change := range kinds {
				cfg := base(name, clients(2), fails(Promotion), admit(Exclusion), change, atMost(40_000))
				if text := notice(t, source, cfg); text != "" {
					t.Logf("%s: %.200s", kind, text)
					return
				}
			}
			t.Error("not noticed")
		})
	}
}

// notice explores with a changed library, and returns what is wrong.
func notice(t *testing.T, source []string, cfg Config) (text string) {
	synctest.Test(t, func(t *testing.T) {
		cfg.server = serve(t, seeded.Text(t, functions.Source, source...))
		defer func() {
			if wrong := recover(); wrong != nil {
				text = fmt.Sprint(wrong)
			}
		}()
		r, err := Explore(&cfg)
		if t.Log(r); err != nil && !errors.Is(err, errMore) {
			t.Fatal(err)
		}
	})
	return text
}
