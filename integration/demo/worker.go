package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// workerRole makes this program a worker of the demo. It is told what to do on
// standard input, and tells what happens on standard output, as JSON both ways.
// It ends when its input does.
const workerRole = "worker"

// A job is what a worker needs to know.
type job struct {
	Redis  address
	Prefix string // of all keys
	Sale   string
	Locked bool
	Lease  time.Duration
	Buyers int // 0: it takes the lock once, and lingers
}

// An address is what of rueidis.ClientOption the demo's server needs.
type address struct {
	Addr, Username, Password string
	DB                       int
	TLS                      bool
	ServerName               string
}

func addressOf(o rueidis.ClientOption) address {
	a := address{Addr: o.InitAddress[0], Username: o.Username, Password: o.Password, DB: o.SelectDB}
	if o.TLSConfig != nil {
		a.TLS, a.ServerName = true, o.TLSConfig.ServerName
	}
	return a
}

func (a address) option() rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: []string{a.Addr}, Username: a.Username, Password: a.Password, SelectDB: a.DB}
	if a.TLS {
		o.TLSConfig = &tls.Config{ServerName: a.ServerName, MinVersion: tls.VersionTLS12}
	}
	return o
}

// A command is what a worker is told.
type command string

const (
	begin command = "begin"
	write command = "write"
)

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
	At    time.Time // when it got the lock, or wrote
	Text  string

	from *process
}

type worker struct {
	job   job
	locks *client.Client
	shop  *shop

	in  *json.Decoder
	mu  sync.Mutex // guards out
	out *json.Encoder
}

// work is a worker's life.
func work(p *reexec.Parent) error {
	// A terminal sends an interrupt to all processes. The parent cleans up, and ends the others'
	// input by that.
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithTimeout(context.Background(), lastGo)
	defer cancel()

	w := &worker{in: json.NewDecoder(p.In), out: json.NewEncoder(os.Stdout)}
	if err := p.Job(&w.job); err != nil {
		return err
	}
	option := w.job.Redis.option()
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

	w.say(event{Kind: ready})
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

// say tells the parent. It blocks while the parent does not listen.
func (w *worker) say(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out.Encode(e) != nil { // the parent is gone
		os.Exit(1)
	}
}

// told blocks until the parent gives this command.
func (w *worker) told(want command) error {
	var got command
	if err := w.in.Decode(&got); err != nil {
		return fmt.Errorf("waiting to %s: %w", want, err)
	}
	if got != want {
		return errors.New("told to " + string(got) + " instead of " + string(want))
	}
	return nil
}
