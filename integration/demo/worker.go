// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// workerRole makes this program a worker of the demo. It is told what to do on
// standard input: begin, and write. It tells what happens on standard output, as
// JSON. It ends when its input does.
const (
	workerRole = "worker"
	begin      = "begin"
	write      = "write"
)

// A job is what a worker needs to know.
type job struct {
	URL    string // of the server
	Prefix string // of all keys
	Sale   string
	Locked bool
	Lease  time.Duration
	Buyers int // 0: it takes the lock once, and lingers
}

// urlOf is the URL of a server, for rueidis.ParseURL.
func urlOf(o rueidis.ClientOption) string {
	user := url.UserPassword(o.Username, o.Password)
	u := url.URL{Scheme: "redis", User: user, Host: o.InitAddress[0], Path: strconv.Itoa(o.SelectDB)}
	if o.TLSConfig != nil {
		u.Scheme = "rediss"
	}
	return u.String()
}

// A kind says what an event tells.
type kind string

const (
	ready   kind = "ready"    // the worker is connected
	sold    kind = "sold"     // to one buyer
	soldOut kind = "sold out" // one buyer gets none
	refused kind = "refused"  // one write, because of its token, or the lock was lost
	holding kind = "holding"  // has the lock and has read the stock
	exited  kind = "exited"   // said for the worker by the parent
)

// An event is what a worker tells.
type event struct {
	Kind  kind
	Fence int64     // of the lock that the worker has or had
	At    time.Time // when it got the lock
	Text  string

	from *reexec.Process
}

const (
	tills   = 5                // buyers that one process serves at the same time
	payment = time.Millisecond // how long it takes to pay
	lastGo  = time.Minute      // nothing in a sale takes that long
)

type worker struct {
	*reexec.Parent
	job   job
	locks *client.Client
	shop  *shop
}

// work is a worker's life.
func work(p *reexec.Parent) error {
	// A terminal sends an interrupt to all processes. The parent cleans up, and ends the others'
	// input by that.
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithTimeout(context.Background(), lastGo)
	defer cancel()

	w := &worker{Parent: p}
	if err := p.Job(&w.job); err != nil {
		return err
	}
	option, err := rueidis.ParseURL(w.job.URL)
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer redis.Close()
	w.shop = newShop(redis, w.job.Prefix, w.job.Sale)
	w.locks, err = client.Open(option, client.Config{Prefix: w.job.Prefix, Lease: w.job.Lease})
	if err != nil {
		return err
	}
	defer w.locks.Close()

	w.tell(event{Kind: ready})
	if err := w.told(begin); err != nil {
		return err
	}
	if w.job.Buyers == 0 {
		return w.linger(ctx)
	}
	go func() {
		if w.told("nothing more") != nil { // the parent is gone
			os.Exit(1)
		}
	}()
	return w.serve(ctx)
}

// tell tells the parent. It blocks while the parent does not listen.
func (w *worker) tell(e event) {
	text, _ := json.Marshal(e) // it has nothing that JSON cannot say
	w.Say(string(text))
}

// told blocks until the parent gives this command.
func (w *worker) told(want string) error {
	got, err := w.Hear()
	if err == nil && got != want {
		err = errors.New("told to " + got)
	}
	if err != nil {
		return fmt.Errorf("waiting to %s: %w", want, err)
	}
	return nil
}

// serve lets this process's buyers buy, some at a time, and tells of each.
func (w *worker) serve(ctx context.Context) error {
	buy := w.buy
	if !w.job.Locked {
		buy = func(ctx context.Context) (e event, err error) { // the mistake: between look and sell others do the same
			e.Kind, err = w.sellOne(ctx, 0)
			return e, err
		}
	}
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		errs [tills]error
	)
	for i := range tills {
		wg.Go(func() {
			for next.Add(1) <= int64(w.job.Buyers) && errs[i] == nil {
				var e event
				if e, errs[i] = buy(ctx); errs[i] == nil {
					w.tell(e)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// buy sells one under the lock. It waits for its turn, and takes the lock's
// token along wherever it reads and writes.
func (w *worker) buy(ctx context.Context) (event, error) {
	lock, err := w.locks.Acquire(ctx, w.shop.name)
	switch {
	case errors.Is(err, client.ErrUnreachable): // on a machine that is very busy
		return event{Kind: refused, Text: err.Error()}, nil
	case err != nil:
		return event{}, err
	}
	e := event{Fence: lock.Fence(), At: time.Now()}
	e.Kind, err = w.sellOne(lock.Context(), lock.Fence()) // the context ends when the lock is lost

	// When this process is late the lock is another's by now. This buyer goes home, as one whom nobody
	// answers does; a sale has more of them.
	if released := lock.Release(ctx); errors.Is(released, client.ErrLost) || errors.Is(err, errRefused) {
		e.Kind, e.Text = refused, fmt.Sprint(errors.Join(err, released))
		return e, nil
	}
	return e, err
}

func (w *worker) sellOne(ctx context.Context, fence int64) (kind, error) {
	stock, err := w.shop.look(ctx, fence)
	if err != nil {
		return "", err
	}
	if stock == 0 {
		return soldOut, nil
	}
	time.Sleep(payment)
	return sold, w.shop.sell(ctx, fence, stock-1)
}

// linger takes the lock, reads the stock, says so, and goes on only when it is
// told to. By then it has been killed or paused, and if paused, it is too late:
// it does what a process does that does not know: it writes.
func (w *worker) linger(ctx context.Context) error {
	lock, err := w.locks.Acquire(ctx, w.shop.name)
	if err != nil {
		return err
	}
	stock, err := w.shop.look(lock.Context(), lock.Fence())
	if err != nil {
		return err
	}
	e := event{Kind: holding, Fence: lock.Fence(), At: time.Now()}
	w.tell(e)
	if err := w.told(write); err != nil {
		return err
	}
	// Not under the lock's context, which would stop it: a process can be paused after any check
	// that it makes.
	e.Kind = sold
	if err = w.shop.sell(ctx, lock.Fence(), stock-1); errors.Is(err, errRefused) {
		<-lock.Context().Done()
		e.Kind, e.Text, err = refused, context.Cause(lock.Context()).Error(), nil
	}
	if err == nil {
		w.tell(e)
	}
	return err
}
