package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

const (
	caseIdleDB    = "idle database"
	caseCrowdedDB = "300,000 other TTL keys"
	inTime        = 50 * time.Millisecond
	killLease     = 2 * time.Second // etcd has no shorter one
)

// kill's holdfast runs: four kills in each of five rounds make the twenty that the bar asks for.
const killsEach = 4

func kill(quick bool) workload {
	limit := 20 * time.Second
	if quick {
		limit = 3 * time.Second
	}
	k := workload{
		Name: "kill", Title: "The holder is killed", Columns: []string{mLate, mLateMax, mLateIn, mLateOf},
		Note: fmt.Sprintf("A process that holds the lock under a lease of %v dies by SIGKILL while another client waits for it. Late is the time from the end "+
			"of the lease, by the server, to the moment when the waiter has the lock. A waiter that has nothing %v after the end of the lease counts as so late.",
			killLease, limit),
	}
	for _, title := range []string{caseIdleDB, caseCrowdedDB} {
		takes := func(r rival) bool {
			return !r.Baseline && (title == caseIdleDB || !r.Etcd) && (!quick || r.Name == holdfastName || title == caseIdleDB)
		}
		k.Cells = append(k.Cells, cell{Case: title, Takes: takes, Run: func(ctx context.Context, w *world, r rival) (values, error) {
			s, err := w.whereFor(ctx, r)
			if err == nil && title == caseCrowdedDB {
				s, err = w.crowd(ctx)
			}
			if err != nil {
				return nil, err
			}
			kills := 1
			if r.Name == holdfastName && !quick {
				kills = killsEach
			}
			return killSome(ctx, s, r, kills, limit)
		}})
	}
	return k
}

// killSome kills several holders one after the other. The values of several rounds are added, not
// averaged.
func killSome(ctx context.Context, s *site, r rival, kills int, limit time.Duration) (values, error) {
	var late []float64
	v := values{mLateMax: 0, mLateIn: 0, mLateOf: float64(kills)}
	for i := range kills {
		d, err := killOnce(ctx, s, r, fmt.Sprintf("killed:%d:%d", time.Now().UnixNano(), i), limit)
		if err != nil {
			return nil, err
		}
		ms := float64(d.Microseconds()) / 1e3
		late = append(late, ms)
		v[mLateMax] = max(v[mLateMax], ms)
		if d <= inTime {
			v[mLateIn]++
		}
	}
	v[mLate] = median(late)
	return v, nil
}

// killOnce returns how long after the end of the lease the next one had the lock.
func killOnce(ctx context.Context, s *site, r rival, name string, limit time.Duration) (time.Duration, error) {
	u := use{Lease: killLease}
	next, err := r.Open(ctx, s.place, u)
	if err != nil {
		return 0, err
	}
	defer next.Close()
	holder, err := reexec.Start(roleHolder, order{Rival: r.Name, Place: s.place, Use: u, Lock: name})
	if err != nil {
		return 0, err
	}
	defer holder.Kill()
	if _, err := holder.Hear(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, killLease+limit)
	defer cancel()
	type turn struct {
		at   time.Time
		hold hold
		err  error
	}
	had := make(chan turn, 1)
	go func() {
		h, err := next.Lock(ctx, name)
		had <- turn{time.Now(), h, err}
	}()
	// The lease has most of its time left, which is plenty for the waiter to be in line before its
	// end.
	holder.Kill()
	ends, err := r.ends(ctx, s.place, name)
	if err != nil {
		cancel()
		<-had
		return 0, fmt.Errorf("end of the lease: %w", err)
	}
	t := <-had
	if t.err != nil {
		if ctx.Err() != nil {
			return limit, nil
		}
		return 0, t.err
	}
	if early := ends.Sub(t.at); early > 2*time.Millisecond {
		err = fmt.Errorf("the lock is broken: taken %v before the lease ended", early)
	}
	return t.at.Sub(ends), errors.Join(err, t.hold.Unlock())
}
