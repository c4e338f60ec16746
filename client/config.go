package client

import (
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
	// that of the client's channels only. Default false.
	NoPrefix bool

	// Lease is how long a lock survives the death of its holder; it is renewed while the holder
	// lives. Default 30 s, at least 10 ms.
	Lease time.Duration

	// MaxWait bounds how long Acquire waits; zero leaves it to the context alone. Default 0.
	MaxWait time.Duration

	// GiveUpEarly makes Acquire fail at once with ErrBusy, without queueing, when the server
	// expects that its turn comes later than MaxWait or the context's deadline. A goroutine that
	// shares the place in line of another one of its process is not asked about. Default false.
	GiveUpEarly bool

	// Tries, if positive, makes Acquire poll that many times, Interval apart, instead of waiting in
	// line. Default 0.
	Tries int
	// Interval is the pause between two polls, when polling was asked for or is all that the server
	// permits. Default 50 ms.
	Interval time.Duration

	// NoRenewal leaves the lease as it was taken: the lock ends with it. Default false.
	NoRenewal bool
	// RenewEvery is how long after each renewal the next one is due. Default a third of the lease;
	// at most four fifths of it, less 2 ms.
	RenewEvery time.Duration
	// MaxRenewals, if positive, ends the lock's context (ErrMaxRenewals) when one more would be
	// due, and releases the lock after Grace. Default 0: no limit.
	MaxRenewals int
	// MaxHold, if positive, ends the lock's context (ErrMaxHold) when it has been held for so long,
	// and releases the lock after Grace. Default 0: no limit.
	MaxHold time.Duration
	// Grace is the time between the end of the work's context and the release, after MaxRenewals or
	// MaxHold: the work's time to stop. Default a third of the lease. After MaxRenewals it is at
	// most what is left of the lease.
	Grace time.Duration

	// MinHold, if positive, is how long the server keeps a lock from others at least, also when it
	// is released earlier: the base of 'at most once per interval'. Release does not wait for it.
	// It is bounded by the lease if the process dies before the Release, or the server cannot be
	// reached from the Release on until the lease is over. MaxHold, MaxRenewals, ReleaseOwner, Break
	// and the end of a lease that is not renewed end the lock earlier. 357 days at the most. Default 0.
	MinHold time.Duration

	// Replicas, if positive, is how many replicas of the primary must have a lock before it is had,
	// and each renewal before it counts: so the lock survives the loss of the primary, if one of
	// them is promoted. With all replicas of the primary it always does, see docs/guarantees.md. It costs
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
	// ACL needs +info. Default 0: none; with OpenQuorum the Lease, or MinHold and its margin if that is
	// longer.
	Guard time.Duration

	// Label is shown to losers and operators with the holder's host and process. Default none; at
	// most 128 bytes.
	Label string

	// AutoLoad lets the client load the functions library on every primary when it finds that it is
	// missing. Default false: deployments do that with the holdfast command.
	AutoLoad bool

	// Logger gets what no caller can be told: a line for each change of state (the server cannot be
	// reached, and can again; tracking is refused), and a line for each lost lock. Default
	// slog.Default().
	Logger *slog.Logger

	// Observer is told what happens to locks: for metrics and traces. Default none.
	Observer *Observer
}

const (
	minLease = 10 * time.Millisecond
	maxLease = functions.MaxTTL * time.Millisecond
	// its lease is a little longer
	maxMinHold = 357 * 24 * time.Hour
	maxLabel   = 128

	maxReplicas    = 100
	maxReplicaWait = 5 * time.Second
)

// complete fills in the defaults and checks the rest.
func (cfg Config) complete(voting bool) (Config, settings, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = "lock:"
	}
	if cfg.Lease == 0 {
		cfg.Lease = 30 * time.Second
	}
	if cfg.Interval == 0 {
		cfg.Interval = 50 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if voting && cfg.Guard == 0 {
		cfg.Guard = max(cfg.Lease, lease.Kept(cfg.MinHold))
	}
	s := settings{
		voting: voting,
		lease:  cfg.Lease, noRenewal: cfg.NoRenewal, renewEvery: cfg.RenewEvery, maxRenewals: cfg.MaxRenewals,
		maxHold: cfg.MaxHold, grace: cfg.Grace, minHold: cfg.MinHold, label: cfg.Label,
		copies:  fcall.Copies{Replicas: cfg.Replicas, Wait: cfg.ReplicaWait},
		guard:   cfg.Guard,
		waiting: waiting{maxWait: cfg.MaxWait, interval: cfg.Interval, tries: cfg.Tries, giveUpEarly: cfg.GiveUpEarly},
	}
	if open := strings.IndexByte(cfg.Prefix, '{'); open >= 0 && strings.IndexByte(cfg.Prefix[open:], '}') < 2 {
		return cfg, s, fmt.Errorf("%w: Prefix %q has a '{' without a hash tag after it", ErrArgument, cfg.Prefix)
	}
	return cfg, s, s.complete()
}

// settings are a Config's as a call may change them. They are of two types: terms is what the
// server and the holder see, and only locks of equal terms are passed on from one goroutine to
// another; waiting is how to wait for a lock.
type settings struct {
	lease, renewEvery, maxHold, grace time.Duration // 0 is the default for all but lease
	minHold, guard                    time.Duration // 0: none
	maxRenewals                       int
	noRenewal                         bool
	label                             string
	copies                            fcall.Copies
	voting                            bool // of several servers
	waiting

	terms terms // made of the above by complete
}

// terms are comparable.
type terms struct {
	lease.Terms
	minHold time.Duration
	label   string
	ttl     string // Length as the library takes it
	longest time.Duration
	guard   string // longest as the library takes it; "": none
	copies  fcall.Copies
}

type waiting struct {
	maxWait, interval time.Duration
	tries             int
	giveUpEarly       bool
	fresh             bool            // ask the server, whatever is known here
	alone             bool            // do not re-enter
	parent            context.Context // of the lock's context; nil: the context of the call
	owner             string
	owned             bool // by WithOwner
}

// complete checks the settings and makes the terms.
func (s *settings) complete() error {
	longest := s.lease*4/5 - 2*time.Millisecond
	switch {
	case s.lease < minLease || s.lease > maxLease:
		return fmt.Errorf("%w: Lease must be from %v to %v, not %v", ErrArgument, minLease, maxLease, s.lease)
	case s.maxWait < 0:
		return fmt.Errorf("%w: MaxWait must not be negative, but is %v", ErrArgument, s.maxWait)
	case s.tries < 0:
		return fmt.Errorf("%w: Tries must not be negative, but is %d", ErrArgument, s.tries)
	case s.interval <= 0:
		return fmt.Errorf("%w: Interval must be positive, not %v", ErrArgument, s.interval)
	case s.renewEvery < 0 || s.renewEvery > longest:
		return fmt.Errorf("%w: RenewEvery must be from 0 to %v, four fifths of the lease less 2 ms, not %v", ErrArgument, longest, s.renewEvery)
	case s.maxRenewals < 0:
		return fmt.Errorf("%w: MaxRenewals must not be negative, but is %d", ErrArgument, s.maxRenewals)
	case s.maxHold < 0:
		return fmt.Errorf("%w: MaxHold must not be negative, but is %v", ErrArgument, s.maxHold)
	case s.grace < 0:
		return fmt.Errorf("%w: Grace must not be negative, but is %v", ErrArgument, s.grace)
	case s.minHold < 0 || s.minHold > maxMinHold:
		return fmt.Errorf("%w: MinHold must be from 0 to %v, not %v", ErrArgument, maxMinHold, s.minHold)
	case s.guard != 0 && (s.guard < s.lease || s.guard > maxLease):
		return fmt.Errorf("%w: Guard must be 0 or from the lease, %v, to %v, not %v", ErrArgument, s.lease, maxLease, s.guard)
	case s.guard != 0 && lease.Kept(s.minHold) > s.guard:
		return fmt.Errorf("%w: Guard must be at least MinHold and its margin, %v, not %v", ErrArgument, lease.Kept(s.minHold), s.guard)
	case s.voting && s.guard == 0:
		return fmt.Errorf("%w: Guard must not be 0 on several servers: one that restarts empty could vote twice", ErrArgument)
	case s.voting && s.copies.Replicas > 0:
		return fmt.Errorf("%w: Replicas must be 0 on several servers, not %d: a majority of them has the lock already", ErrArgument, s.copies.Replicas)
	case s.voting && s.owned:
		return fmt.Errorf("%w: WithOwner is not possible on several servers: they have no lock that others can join", ErrArgument)
	case s.copies.Replicas < 0 || s.copies.Replicas > maxReplicas:
		return fmt.Errorf("%w: Replicas must be from 0 to %d, not %d", ErrArgument, maxReplicas, s.copies.Replicas)
	case s.copies.Wait < 0:
		return fmt.Errorf("%w: ReplicaWait must not be negative, but is %v", ErrArgument, s.copies.Wait)
	case s.owned && s.owner == "":
		return fmt.Errorf("%w: Owner must not be empty", ErrArgument)
	case len(s.owner) > functions.MaxBytes:
		return fmt.Errorf("%w: Owner must have at most %d bytes, not %d", ErrArgument, functions.MaxBytes, len(s.owner))
	}
	if err := checkLabel(s.label); err != nil {
		return err
	}
	s.terms = terms{Terms: lease.Terms{Length: s.lease, RenewEvery: s.renewal(), MaxRenewals: s.maxRenewals, MaxHold: s.maxHold,
		Grace: s.grace}, minHold: s.minHold, label: s.label, ttl: fcall.TTL(s.lease)}
	s.terms.copies = s.replicated()
	s.terms.longest = maxLease
	if s.guard > 0 {
		s.terms.longest, s.terms.guard = s.guard, fcall.TTL(s.guard)
	}
	if s.grace == 0 {
		s.terms.Grace = s.lease / 3
	}
	return nil
}

// replicated is what to ask of replicas: with a wait that leaves time for the rest.
func (s *settings) replicated() fcall.Copies {
	c := s.copies
	if c.Replicas == 0 {
		return fcall.Copies{}
	}
	if c.Wait == 0 {
		c.Wait = time.Second
	}
	c.Wait = min(c.Wait, s.lease/8, maxReplicaWait)
	return c
}

func checkLabel(label string) error {
	if len(label) > maxLabel {
		return fmt.Errorf("%w: Label must have at most %d bytes, not %d", ErrArgument, maxLabel, len(label))
	}
	if strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%w: Label must not have control characters: %q", ErrArgument, label)
	}
	return nil
}

func (s *settings) renewal() time.Duration {
	switch {
	case s.noRenewal:
		return 0
	case s.renewEvery > 0:
		return s.renewEvery
	}
	return s.lease / 3
}
