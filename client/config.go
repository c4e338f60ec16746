package client

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// Config holds the settings of a Client. The zero value is a good one: every field says its default. The options of a
// call (With...) change one of them for that call.
type Config struct {
	// Prefix and the lock's name make the Redis key. Default "lock:". With a hash tag in it ("{shop}:lock:") all locks
	// are in one slot.
	Prefix string

	// Lease is how long a lock survives the death of its holder; it is renewed while the holder lives. Default 30 s,
	// at least 10 ms.
	Lease time.Duration

	// MaxWait bounds how long Acquire waits; zero leaves it to the context alone. Default 0.
	MaxWait time.Duration

	// GiveUpEarly makes Acquire fail at once, without queueing, when the server expects that its turn comes later than
	// MaxWait or the context's deadline. Default false.
	GiveUpEarly bool

	// Tries, if positive, makes Acquire poll that many times, Interval apart, instead of waiting in line. Default 0.
	Tries int
	// Interval is the pause between two polls, when polling was asked for or is all that the server permits. Default 50 ms.
	Interval time.Duration

	// NoRenewal leaves the lease as it was taken: the lock ends with it. Default false.
	NoRenewal bool
	// RenewEvery is how long after each renewal the next one is due. Default a third of the lease; less than the lease.
	RenewEvery time.Duration
	// MaxRenewals, if positive, ends the lock's context (ErrMaxRenewals) when one more would be due, and releases the lock
	// after Grace. Default 0: no limit.
	MaxRenewals int
	// MaxHold, if positive, ends the lock's context (ErrMaxHold) when it has been held for so long, and releases the lock
	// after Grace. Default 0: no limit.
	MaxHold time.Duration
	// Grace is the time between the end of the work's context and the release, after MaxRenewals or MaxHold: the work's
	// time to stop. Default a third of the lease. After MaxRenewals it is at most what is left of the lease.
	Grace time.Duration

	// Label is shown to losers and operators with the holder's host and process. Default none; at most 128 bytes.
	Label string

	// AutoLoad lets the client load the functions library on every primary when it finds that it is missing. Default false:
	// deployments do that with the holdfast command.
	AutoLoad bool

	// Logger hears of what no caller can be told. Default slog.Default().
	Logger *slog.Logger
}

const (
	minLease = 10 * time.Millisecond
	maxLease = functions.MaxTTL * time.Millisecond
	maxLabel = 128
)

// complete fills in the defaults and checks the rest.
func (cfg Config) complete() (Config, error) {
	if cfg.Prefix == "" {
		cfg.Prefix = "lock:"
	}
	if open := strings.IndexByte(cfg.Prefix, '{'); open >= 0 && strings.IndexByte(cfg.Prefix[open:], '}') < 2 {
		return cfg, fmt.Errorf("%w: Prefix %q has a '{' without a hash tag after it", ErrArgument, cfg.Prefix)
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
	s := cfg.settings()
	return cfg, s.validate()
}

// settings is what a call may change.
type settings struct {
	lease, maxWait, interval time.Duration
	tries                    int
	giveUpEarly              bool
	noRenewal                bool
	renewEvery               time.Duration // 0: a third of the lease
	maxRenewals              int
	maxHold, grace           time.Duration // grace 0: a third of the lease
	label                    string
	owner                    string
	ttl                      string // the lease in the library's unit, milliseconds; validate writes it
}

func (cfg Config) settings() settings {
	return settings{
		lease: cfg.Lease, maxWait: cfg.MaxWait, interval: cfg.Interval, tries: cfg.Tries, giveUpEarly: cfg.GiveUpEarly,
		noRenewal: cfg.NoRenewal, renewEvery: cfg.RenewEvery, maxRenewals: cfg.MaxRenewals, maxHold: cfg.MaxHold,
		grace: cfg.Grace, label: cfg.Label,
	}
}

func (s *settings) validate() error {
	switch {
	case s.lease < minLease || s.lease > maxLease:
		return fmt.Errorf("%w: Lease must be from %v to %v, not %v", ErrArgument, minLease, maxLease, s.lease)
	case s.maxWait < 0:
		return fmt.Errorf("%w: MaxWait must not be negative, but is %v", ErrArgument, s.maxWait)
	case s.tries < 0:
		return fmt.Errorf("%w: Tries must not be negative, but is %d", ErrArgument, s.tries)
	case s.interval <= 0:
		return fmt.Errorf("%w: Interval must be positive, not %v", ErrArgument, s.interval)
	case s.renewEvery < 0 || s.renewEvery >= s.lease:
		return fmt.Errorf("%w: RenewEvery must be from 0 to less than the lease %v, not %v", ErrArgument, s.lease, s.renewEvery)
	case s.maxRenewals < 0:
		return fmt.Errorf("%w: MaxRenewals must not be negative, but is %d", ErrArgument, s.maxRenewals)
	case s.maxHold < 0:
		return fmt.Errorf("%w: MaxHold must not be negative, but is %v", ErrArgument, s.maxHold)
	case s.grace < 0:
		return fmt.Errorf("%w: Grace must not be negative, but is %v", ErrArgument, s.grace)
	case len(s.label) > maxLabel:
		return fmt.Errorf("%w: Label must have at most %d bytes, not %d", ErrArgument, maxLabel, len(s.label))
	case len(s.owner) > functions.MaxBytes:
		return fmt.Errorf("%w: Owner must have at most %d bytes, not %d", ErrArgument, functions.MaxBytes, len(s.owner))
	}
	s.ttl = strconv.FormatInt(int64((s.lease+time.Millisecond-1)/time.Millisecond), 10)
	return nil
}

func (s *settings) renewal() time.Duration {
	if s.renewEvery > 0 {
		return s.renewEvery
	}
	return s.lease / 3
}

func (s *settings) stopTime() time.Duration {
	if s.grace > 0 {
		return s.grace
	}
	return s.lease / 3
}

// Option changes a setting for one call.
type Option func(*settings)

// WithLease sets the lease for this call; see Config.Lease.
func WithLease(d time.Duration) Option { return func(s *settings) { s.lease = d } }

// WithMaxWait bounds the wait of this call; zero leaves it to the context. See Config.MaxWait.
func WithMaxWait(d time.Duration) Option { return func(s *settings) { s.maxWait = d } }

// WithGiveUpEarly fails at once when the wait is expected to take longer than the call may; see Config.GiveUpEarly.
func WithGiveUpEarly() Option { return func(s *settings) { s.giveUpEarly = true } }

// WithPolling makes Acquire try that often, interval apart, instead of waiting in line. One try is TryAcquire.
func WithPolling(tries int, interval time.Duration) Option {
	return func(s *settings) { s.tries, s.interval = tries, interval }
}

// WithoutRenewal lets the lock end with its first lease.
func WithoutRenewal() Option { return func(s *settings) { s.noRenewal = true } }

// WithRenewal switches renewal on, every d; zero is the default, a third of the lease.
func WithRenewal(d time.Duration) Option {
	return func(s *settings) { s.noRenewal, s.renewEvery = false, d }
}

// WithMaxRenewals ends the work when the lease has been renewed n times and would be again; see Config.MaxRenewals.
func WithMaxRenewals(n int) Option { return func(s *settings) { s.maxRenewals = n } }

// WithMaxHold ends the work after d, and the lock after a further grace (zero: a third of the lease); see Config.MaxHold.
func WithMaxHold(d, grace time.Duration) Option {
	return func(s *settings) { s.maxHold, s.grace = d, grace }
}

// WithLabel shows a label to losers and operators; see Config.Label.
func WithLabel(label string) Option { return func(s *settings) { s.label = label } }

// WithOwner takes or re-enters the lock as the owner of that name, for work that crosses processes: whoever knows the
// owner string of a held lock ([Lock.Owner]) joins it with a hold of its own, and the lock is free when all holds are
// released. Two that use one owner string do not exclude each other.
func WithOwner(owner string) Option { return func(s *settings) { s.owner = owner } }
