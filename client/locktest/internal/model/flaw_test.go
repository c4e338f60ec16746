package model

import (
	"fmt"
	"testing"
	"testing/synctest"
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
		"  if not held_by(lock, owner) then\n    commit(lock, us)\n    return disown(lock, us, owner)\n  end\n", "",
		"  if v[1] == args[1] and (#args == 1 or", "  if v[1] and (#args == 1 or",
	}},
	{"leave without a look at the owner", Ownership, []func(*Config){odd, strays(1)}, []string{
		"  local mine = held_by(lock, owner) and (not fence", "  local mine = lock.ends > 0 and (not fence",
	}},
	{"renewal without a look at the owner", Exclusion, nil, []string{
		"  local mine = held_by(lock, owner)\n    and (not fence or fence == lock.fence or raise == lock.fence)",
		"  local mine = lock.ends > 0",
	}},
	{"renewal without a look at the hold", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		"    mine = lock.holds > 0 and select(2, scan_holds(read_holds(lock), hold)) ~= nil\n", "",
	}},
	{"a release of one hold gives back all", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		"  if left == 0 then\n    pass_on(lock, us, used)", "  if true then\n    pass_on(lock, us, used)",
	}},
	{"tokens by the time alone", Tokens, []func(*Config){coarse}, []string{
		"  last = us > last and us or last + 1\n", "  last = us\n",
		"  return last > above and last or above + 1\n", "  return last\n",
	}},
	{"a token ahead is forgotten", Tokens, []func(*Config){coarse, fails(Promotion)}, []string{
		"  if top > us and top > last and top <= us + AHEAD_US then token = ms(top) + 1 end\n", "",
		"  if top > last and top > clock() then return nil end\n", "",
	}},
	{"a lock without an expiry", Expiry, nil, []string{
		"  local done = try('PEXPIREAT', key, expires)\n", "  local done = 1\n",
	}},
	{"the key goes before the lease", Expiry, nil, []string{
		"    call('PEXPIREAT', key, text)\n  elseif", "  elseif",
	}},
	{"acquire past the line", Order, []func(*Config){clients(3), healthy}, []string{
		"  settle(lock, us)\n  local mine, reply = try_take(",
		"  if ms(us) >= lock.ends then lock.ends = 0 end\n  local mine, reply = try_take(",
		"and ms(us) >= lock.kept and not has_line(lock)", "and ms(us) >= lock.kept",
	}},
	{"handed over without an end", Progress, []func(*Config){watched, admit(Expiry)}, []string{
		"  assign(lock, waiter, us, min(waiter.ttl, PROVISIONAL_MS), holds)", "  assign(lock, waiter, us, MAX_TTL_MS, holds)",
		"  top, ends = run_end(fence, w.tokens, us), now + min(w.ttl, PROVISIONAL_MS) + 1", "  top, ends = run_end(fence, w.tokens, us), now + MAX_TTL_MS + 1",
	}},
	{"a young memory grants a free lock", Exclusion, []func(*Config){fails(Restart), guarded(2)}, []string{
		"  if closed > 0 then return false end\n", "",
	}},
	{"a young memory hands over", Exclusion, []func(*Config){fails(Promotion), guarded(2)}, []string{
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n", "  lock.closed = 0\n",
	}},
	{"a young memory grants one more hold", Exclusion, []func(*Config){joint, guarded(2)}, []string{
		"      if lock.closed > 0 then return { 0, lock.closed, lock.owner, lock.count, 'settling' } end\n", "",
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

// moments are changes of the library by a millisecond. They break no invariant where time is ticks, but what
// a call does is another thing at two moments of a tick then, or takes a part of one.
var moments = map[string][]string{
	"a longer provisional lease": {"local PROVISIONAL_MS = 2000 ", "local PROVISIONAL_MS = 2001 "},
}

func TestMomentsAreNoticed(t *testing.T) {
	for name, source := range moments {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := base(name, clients(2), atMost(50_000))
				cfg.server = serve(t, change(t, source...))
				defer func() {
					if wrong := recover(); wrong == nil {
						t.Error("not noticed")
					} else {
						t.Logf("%.300s", fmt.Sprint(wrong))
					}
				}()
				r, err := Explore(&cfg)
				t.Log(r, err)
			})
		})
	}
}
