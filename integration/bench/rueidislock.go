package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func rueidislockRival() rival {
	return rueidislockWith(place.option)
}

func rueidislockTunedRival() rival {
	return rueidislockWith(place.tuned).asTuned()
}

func rueidislockWith(option func(place) rueidis.ClientOption) rival {
	return rival{
		Name:     "rueidislock",
		Settings: "KeyMajority 1 and NoLoopTracking, as its README says for one Redis of 7.0.5 or later; KeyValidity is the lease, TryNextAfter 1 s so that a loaded machine does not make its requests time out",
		Sends:    []string{"evalsha", "eval"},
		Renews:   true,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			return openRueidislock(option(p), u)
		},
		Key: func(name string) string { return "rueidislock:0:" + name },
	}
}

type rueidislockLocker struct{ locker rueidislock.Locker }

func openRueidislock(option rueidis.ClientOption, u use) (locker, error) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   option,
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    u.Lease,
		TryNextAfter:   time.Second,
	})
	if err != nil {
		return nil, err
	}
	return rueidislockLocker{l}, nil
}

func (r rueidislockLocker) Lock(ctx context.Context, name string) (hold, error) {
	held, unlock, err := r.locker.WithContext(ctx, name)
	return rueidislockHold(held, unlock), err
}

func (r rueidislockLocker) TryLock(ctx context.Context, name string) (hold, error) {
	held, unlock, err := r.locker.TryWithContext(ctx, name)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return hold{}, errBusy
	}
	return rueidislockHold(held, unlock), err
}

func rueidislockHold(held context.Context, unlock context.CancelFunc) hold {
	return hold{Unlock: func() error { unlock(); return nil }, Context: held}
}

func (r rueidislockLocker) Close() { r.locker.Close() }
