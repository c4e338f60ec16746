// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// Config holds the settings of a Client. The zero value is a good one: every field says its
// default. The options of a call (With...) change one of them for that call.
type Config struct {
	// Prefix and the lock's name make the Redis key. Default "lock:". With a hash tag in it
	// ("{shop}:lock:") all locks are in one slot.
	Prefix string
	// NoPrefix makes the lock's name the whole key, for locks that others named. Prefix is then
	// that of the client's channels only, and has no hash tag. Default false.
	NoPrefix bool

	// Lease is how long a lock survives the death of its holder; it is renewed while the holder
	// lives. Default 30 s, at least 10 ms.
	Lease time.Duration

	// MaxWait bounds how long Acquire waits; zero leaves it to the context alone. Default 0.
	MaxWait time.Duration

	// GiveUpEarly makes Acquire fail at once with ErrBusy, without queueing, when the server
	// expects that its turn comes later than MaxWait or the deadline of the call's context. A goroutine that
	// shares the place in line of another one of its process is not asked about. Several servers have no
	// line: there it has no effect. Default false.
	GiveUpEarly bool

	// NoRenewal leaves the lease as it was taken: the lock ends with it. Default false.
	NoRenewal bool
	// RenewEvery is how long after each renewal the next one is due. Default a third of the lease;
	// at least 1 ms, at most four fifths of the lease, less 2 ms.
	RenewEvery time.Duration
	// MaxRenewals, if positive, ends the lock's context (ErrMaxRenewals) when one more would be
	// due, and releases the lock after Grace. Default 0: no limit.
	MaxRenewals int
	// MaxHold, if positive, ends the lock's context (ErrMaxHold) when it has been held for so long,
	// and releases the lock after Grace. Default 0: no limit.
	MaxHold time.Duration
	// Grace is the time between the end of the work's context and the release, after MaxRenewals or
	// MaxHold, or from the first renewal on after the context of the call ended: the work's time to
	// stop. Default a third of the lease. After MaxRenewals, or with NoRenewal, it is at most what is
	// left of the lease.
	Grace time.Duration

	// MinHold, if positive, is how long the server keeps a lock from others at least, counted from the
	// grant, also when it is released earlier: the base of 'at most once per interval'. The key keeps
	// it, whatever becomes of this process. Release does not wait for it. Break ends it, and the loss
	// of the server's memory. A year at the most. Default 0.
	MinHold time.Duration

	// Replicas, if positive, is how many replicas of the primary must acknowledge a lock before Acquire
	// returns, and each renewal before it counts: so the lock survives the loss of the primary, if one
	// of them is promoted. With all replicas of the primary it always does, see docs/guarantees.md. It costs
	// the time of the replication, a connection for each call under way, and what client-side
	// caching knows of held locks. Default 0: none.
	Replicas int
	// ReplicaWait is how long the server waits for them. After that the call fails with
	// ErrNotReplicated, and the lock is given back in the background: a try that follows at once can
	// still find it held, by this process. Who waits in line goes on asking for a lease.
	// It is cut to an eighth of the lease, and to 5 s. Default a second.
	ReplicaWait time.Duration

	// Guard, if positive, is how long the memory of a server must be unbroken before it grants the
	// lock, at least the lease. A failover or a restart can lose locks, but not the leases that
	// their holders count on; with Guard the server grants none until those have ended, and what it
	// remembers goes on. So a lost primary costs a pause of Guard, and not two holders, if it stopped
	// before another was promoted: docs/guarantees.md says how to set servers for that. All clients
	// of a lock have the same Guard, and no longer Lease; make it some seconds longer than that. The
	// ACL needs +info. Default 0: none; with package quorum the Lease.
	Guard time.Duration

	// Label is shown to losers and operators with the holder's host and process. Default none; at
	// most 128 bytes.
	Label string

	// AutoLoad lets the client load the functions library on every primary when it finds that it is
	// missing, at most once a second. Default false: deployments do that with the holdfast command.
	AutoLoad bool

	// Logger gets what no caller can be told: a line for each change of state (the server cannot be
	// reached, and can again; tracking is refused), and a line for each lost lock. A goroutine of its
	// own writes them, and says how many it left out if the log is too slow. Default slog.Default().
	Logger *slog.Logger

	// Observer is told what happens to locks: for metrics and traces. Default none.
	Observer *Observer
}

// The bounds and defaults of the settings.
const (
	defaultLease = 30 * time.Second
	minLease     = 10 * time.Millisecond
	maxLease     = functions.MaxTTL * time.Millisecond
	maxLabel     = 128

	maxReplicas        = 100
	maxReplicaWait     = 5 * time.Second
	defaultReplicaWait = time.Second
)

// complete fills in the defaults and checks the rest. voting: of several servers.
func (cfg Config) complete(voting bool) (*settings, error) {
	cfg.Prefix = cmp.Or(cfg.Prefix, "lock:")
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if voting && cfg.Guard == 0 {
		cfg.Guard = cfg.Lease
	}
	switch open := strings.IndexByte(cfg.Prefix, '{'); { // the client's channels begin with the prefix
	case open >= 0 && strings.IndexByte(cfg.Prefix[open:], '}') < 2:
		return nil, fmt.Errorf("%w: Prefix %q has a '{' without a hash tag after it", ErrArgument, cfg.Prefix)
	case len(cfg.Prefix) > maxPrefix:
		return nil, fmt.Errorf("%w: Prefix must have at most %d bytes, not %d", ErrArgument, maxPrefix, len(cfg.Prefix))
	case cfg.NoPrefix && open >= 0: // a channel's slot is its key's
		return nil, fmt.Errorf("%w: Prefix %q must not have a hash tag with NoPrefix: keys do not have it", ErrArgument, cfg.Prefix)
	}
	s := &settings{Config: cfg, voting: voting}
	return s, cmp.Or(checkText("Prefix", cfg.Prefix), s.complete())
}

// maxPrefix leaves room for the rest of a channel's name.
const maxPrefix = functions.MaxBytes - 64

// settings are a Config, which the options of a call may change, and what only a call may set.
type settings struct {
	Config
	voting bool // of several servers

	interval time.Duration   // between two tries of a poll
	tries    int             // 0: wait in line
	fresh    bool            // ask the server, whatever is known here
	alone    bool            // do not re-enter
	parent   context.Context // of the lock's context; nil: the context of the call
	owner    string
	owned    bool           // by WithOwner
	crowd    int            // as in lease.Terms
	limit    int            // of WithLimit, as it was given
	several  bool           // by WithLimit or WithShared
	every    *time.Duration // of Once and OnceValue; nil: by neither
	valued   bool           // by OnceValue

	terms *lease.Terms // made of the above by complete; never written after
}

// complete checks the settings and makes the terms.
func (s *settings) complete() error {
	if err := s.check(); err != nil {
		return err
	}
	t := lease.Terms{Length: s.Lease, RenewEvery: cmp.Or(s.RenewEvery, s.Lease/3), MaxRenewals: s.MaxRenewals, MaxHold: s.MaxHold,
		Grace: cmp.Or(s.Grace, s.Lease/3), MinHold: s.MinHold, Guard: s.Guard,
		Replicas: s.Replicas, Label: s.Label, Valued: s.valued, Crowd: s.crowd,
		TTL: fcall.TTL(s.Lease), GuardText: fcall.TTL(s.Guard), MinHoldText: fcall.TTL(s.MinHold)}
	if s.NoRenewal {
		t.RenewEvery = 0
	}
	if t.Replicas > 0 {
		t.ReplicaWait = min(cmp.Or(s.ReplicaWait, defaultReplicaWait), s.Lease/8, maxReplicaWait)
	}
	s.terms = &t
	return nil
}

// check names the first field that is wrong.
func (s *settings) check() error {
	slowest := s.Lease*4/5 - 2*time.Millisecond
	switch {
	case s.every != nil && (*s.every < minLease || *s.every > maxLease):
		return fmt.Errorf("%w: every must be from %v to %v, not %v", ErrArgument, minLease, maxLease, *s.every)
	case s.Lease < minLease || s.Lease > maxLease:
		return fmt.Errorf("%w: Lease must be from %v to %v, not %v", ErrArgument, minLease, maxLease, s.Lease)
	case s.MaxWait < 0:
		return fmt.Errorf("%w: MaxWait must not be negative, but is %v", ErrArgument, s.MaxWait)
	case s.tries < 0:
		return fmt.Errorf("%w: WithPolling: tries must not be negative, but is %d", ErrArgument, s.tries)
	case s.tries > 0 && s.interval <= 0:
		return fmt.Errorf("%w: WithPolling: interval must be positive, not %v", ErrArgument, s.interval)
	case s.RenewEvery != 0 && (s.RenewEvery < time.Millisecond || s.RenewEvery > slowest):
		return fmt.Errorf("%w: RenewEvery must be 0 or from 1 ms to %v, four fifths of the lease less 2 ms, not %v", ErrArgument, slowest, s.RenewEvery)
	case s.MaxRenewals < 0:
		return fmt.Errorf("%w: MaxRenewals must not be negative, but is %d", ErrArgument, s.MaxRenewals)
	case s.MaxHold < 0:
		return fmt.Errorf("%w: MaxHold must not be negative, but is %v", ErrArgument, s.MaxHold)
	case s.Grace < 0:
		return fmt.Errorf("%w: Grace must not be negative, but is %v", ErrArgument, s.Grace)
	case s.MinHold < 0 || s.MinHold > maxLease:
		return fmt.Errorf("%w: MinHold must be from 0 to %v, not %v", ErrArgument, maxLease, s.MinHold)
	case s.MinHold > 0 && s.owned:
		return fmt.Errorf("%w: MinHold must be 0 with WithOwner, not %v (Once keeps a lock so): a lock that others join has no minimum", ErrArgument, s.MinHold)

	// what decides what a lock survives
	case s.voting && s.Guard == 0:
		return fmt.Errorf("%w: Guard must not be 0 on several servers: one that restarts empty could vote twice", ErrArgument)
	case s.Guard != 0 && (s.Guard < s.Lease || s.Guard > maxLease):
		return fmt.Errorf("%w: Guard must be 0 or from the lease, %v, to %v, not %v (on several servers it is Config.Lease unless set)",
			ErrArgument, s.Lease, maxLease, s.Guard)
	case s.voting && s.Replicas > 0:
		return fmt.Errorf("%w: Replicas must be 0 on several servers, not %d: a majority of them has the lock already", ErrArgument, s.Replicas)
	case s.Replicas < 0 || s.Replicas > maxReplicas:
		return fmt.Errorf("%w: Replicas must be from 0 to %d, not %d", ErrArgument, maxReplicas, s.Replicas)
	case s.ReplicaWait < 0:
		return fmt.Errorf("%w: ReplicaWait must not be negative, but is %v", ErrArgument, s.ReplicaWait)

	case s.voting && s.owned:
		return fmt.Errorf("%w: WithOwner is not possible on several servers: they have no lock that others can join", ErrArgument)
	case s.owned && s.owner == "":
		return fmt.Errorf("%w: Owner must not be empty", ErrArgument)
	case len(s.owner) > functions.MaxBytes:
		return fmt.Errorf("%w: Owner must have at most %d bytes, not %d", ErrArgument, functions.MaxBytes, len(s.owner))

	// locks, and values, that several may have
	case s.valued && (s.voting || s.owned || s.several || s.tries > 0):
		return fmt.Errorf("%w: OnceValue is not possible on several servers, nor with WithOwner, WithLimit, WithShared or WithPolling", ErrArgument)
	case s.every != nil && s.crowd == lease.Shared:
		return fmt.Errorf("%w: Once is not possible WithShared: fn would run in every process", ErrArgument)
	case s.several && s.voting:
		return fmt.Errorf("%w: WithLimit and WithShared are not possible on several servers: each would count other holders", ErrArgument)
	case s.several && s.owned:
		return fmt.Errorf("%w: WithLimit and WithShared cannot be combined with WithOwner: each holder has an owner string of its own", ErrArgument)
	case s.several && s.crowd != lease.Shared && (s.crowd < 1 || s.crowd > functions.MaxHolders):
		return fmt.Errorf("%w: WithLimit: the limit must be from 1 to %d, not %d", ErrArgument, functions.MaxHolders, s.limit)

	case len(s.Label) > maxLabel:
		return fmt.Errorf("%w: Label must have at most %d bytes, not %d", ErrArgument, maxLabel, len(s.Label))
	}
	return cmp.Or(checkText("Owner", s.owner), checkText("Label", s.Label))
}

func checkText(field, text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: %s must not have control characters: %q", ErrArgument, field, text)
	}
	return nil
}
