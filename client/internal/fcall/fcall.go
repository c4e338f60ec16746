// Package fcall is the only place that speaks FCALL: a method for each function of the library, its
// replies, and the errors that can come back. Every call returns when its context ends, whatever
// rueidis waits for.
package fcall

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Caller calls the library on one deployment. It is safe for concurrent use once its fields are
// set.
type Caller struct {
	Redis    rueidis.Client
	Slotted  bool // Cluster: commands without a key must be sent to one
	Pulse    *Pulse
	AutoLoad bool             // load the library where it is missing
	Heard    func()           // the server has answered
	Changed  func(key string) // a call of ours may have changed the key
	Cached   func(error)      // the answer to CLIENT CACHING YES, an error of rueidis
	Demoted  func()           // the server is a replica
	Closing  context.Context  // ends calls that can be left behind, by its cause

	homes homes

	// of *flight; a channel must not leave its testing/synctest bubble, so not one for all
	flights sync.Pool
}

// TTL is a lease as the library takes it: milliseconds, rounded up.
func TTL(lease time.Duration) string {
	return strconv.FormatInt(int64((lease+time.Millisecond-1)/time.Millisecond), 10)
}

// Request is what who wants a lock asks for.
type Request struct {
	Owner, TTL string
	Guard      string // as TTL; "": none
	Block      int64  // tokens
	Hold       string // "": a plain lock

	Channel string        // Wait: where to hear of a grant
	MaxWait time.Duration // Wait; 0: any
}

// Acquire takes a lock that is free. With a hold it takes a joinable one, or adds the hold to the
// one that the owner has.
func (c *Caller) Acquire(ctx context.Context, copies Copies, key string, r Request) (Reply, error) {
	function, args := r.acquire()
	return c.grant(ctx, copies, function, key, args...)
}

// AcquireTracked is Acquire by a tracked call: if the lock is busy, the server says when that
// changes.
func (c *Caller) AcquireTracked(ctx context.Context, key string, r Request) (Reply, error) {
	function, args := r.acquire()
	return decodeReply(c.ask(ctx, function, key, args...))
}

func (r Request) acquire() (function string, args []string) {
	args = append(make([]string, 0, 4), r.Owner, r.TTL)
	if r.Hold != "" {
		function, args = functions.AcquireReentrant, append(args, r.Hold)
	} else {
		function = functions.Acquire
		if r.Block > 1 || r.Guard != "" {
			args = append(args, strconv.FormatInt(max(1, r.Block), 10))
		}
	}
	if r.Guard != "" {
		args = append(args, r.Guard)
	}
	return function, args
}

// AcquireAll takes several locks that are free in one step: of one server, and in Cluster of one hash
// slot. Each is for the owner at its place. The tokens are nil if one of the locks is not free: then
// none was taken.
func (c *Caller) AcquireAll(ctx context.Context, keys []string, r Request, owners []string) (fences []int64, err error) {
	args := append([]string{r.TTL, r.Guard}, owners...)
	command := c.Redis.B().Fcall().Function(functions.AcquireAll).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	c.Pulse.asked()
	values, err := guard(ctx, c.Closing, func(ctx context.Context) (messages, error) {
		values, err := c.Redis.Do(ctx, command).ToArray()
		return values, c.classify(ctx, err)
	})
	c.Pulse.done(answered(err))
	for _, key := range keys {
		c.Changed(key)
	}
	if err != nil {
		return nil, err
	}
	c.Heard()
	return decodeFences(values, len(keys))
}

// Renewal is what a holder asks for.
type Renewal struct {
	Owner, TTL string
	Channel    string // left with the lock, to hear of a break; "": none
	Fence      int64  // the only token that is renewed
	Hold       string // the only hold; "": a plain lock
}

// Renew starts the lease anew.
func (c *Caller) Renew(ctx context.Context, copies Copies, key string, r Renewal) (Reply, error) {
	return c.grant(ctx, copies, functions.Renew, key, r.args()...)
}

func (r Renewal) args() []string {
	args := append(make([]string, 0, 5), r.Owner, r.TTL, r.Channel, strconv.FormatInt(r.Fence, 10))
	if r.Hold != "" {
		args = append(args, r.Hold)
	}
	return args
}

// Raise is Renew for a lock that several servers have: there, Fence is the least token that it shall
// have.
func (c *Caller) Raise(ctx context.Context, key string, r Renewal) (Reply, error) {
	return decodeReply(c.call(ctx, functions.Raise, key, r.raise()...))
}

func (r Renewal) raise() []string {
	args := append(make([]string, 0, 4), r.Owner, r.TTL, strconv.FormatInt(r.Fence, 10))
	if r.Channel != "" {
		args = append(args, r.Channel)
	}
	return args
}

// Release gives back one hold, or with hold "" a plain lock. last, if not 0, is the last token used
// of a run.
func (c *Caller) Release(ctx context.Context, key, owner, hold string, last int64) (Reply, error) {
	switch {
	case last != 0:
		return decodeReply(c.call(ctx, functions.Release, key, owner, hold, strconv.FormatInt(last, 10)))
	case hold != "":
		return decodeReply(c.call(ctx, functions.Release, key, owner, hold))
	}
	return decodeReply(c.call(ctx, functions.Release, key, owner))
}

// Wait takes the lock, or joins its line, or says how the line stands. What it takes no replica may
// have yet: Renew it with Copies.
func (c *Caller) Wait(ctx context.Context, key string, r Request) (Reply, error) {
	return decodeReply(c.call(ctx, functions.Wait, key, r.wait()...))
}

// wait leaves out what nothing is asked for after.
func (r Request) wait() []string {
	args := append(make([]string, 0, 7), r.Owner, r.TTL, r.Channel)
	if r.Block > 1 || r.MaxWait > 0 || r.Hold != "" || r.Guard != "" {
		args = append(args, strconv.FormatInt(max(1, r.Block), 10))
	}
	if r.MaxWait > 0 || r.Hold != "" || r.Guard != "" {
		maxWait := int64(functions.MaxTTL) // any
		if r.MaxWait > 0 {
			maxWait = min(max(1, r.MaxWait.Milliseconds()), maxWait)
		}
		args = append(args, strconv.FormatInt(maxWait, 10))
	}
	if r.Hold != "" || r.Guard != "" {
		args = append(args, r.Hold)
	}
	if r.Guard != "" {
		args = append(args, r.Guard)
	}
	return args
}

// Leave gives up waiting, and a hold that was granted meanwhile. fence, if not 0, is the only grant
// that it gives back.
func (c *Caller) Leave(ctx context.Context, key, owner, hold string, fence int64) error {
	_, err := c.call(ctx, functions.Leave, key, leaveArgs(owner, hold, fence)...)
	return err
}

func leaveArgs(owner, hold string, fence int64) []string {
	switch {
	case fence != 0:
		return []string{owner, hold, strconv.FormatInt(fence, 10)}
	case hold != "":
		return []string{owner, hold}
	}
	return []string{owner}
}

// Break takes the lock from its holder, and returns who that was.
func (c *Caller) Break(ctx context.Context, key, reason string) (Standing, error) {
	values, err := c.call(ctx, functions.Break, key, reason)
	if err != nil {
		return Standing{}, err
	}
	d := decoder{values: values}
	s := Standing{Held: d.integer(0) == 1, Owner: d.text(1), Fence: d.integer(2)}
	return s, d.err
}

// Inspect asks how the lock stands.
func (c *Caller) Inspect(ctx context.Context, key string) (Standing, error) {
	return decodeStanding(c.do(ctx, functions.Inspect, key))
}

// InspectTracked is Inspect by a tracked call.
func (c *Caller) InspectTracked(ctx context.Context, key string) (Standing, error) {
	return decodeStanding(c.ask(ctx, functions.Inspect, key))
}

// Version asks for the version of the library.
func (c *Caller) Version(ctx context.Context) (string, error) {
	return guard(ctx, c.Closing, func(ctx context.Context) (string, error) {
		version, err := c.Redis.Do(ctx, c.Redis.B().Fcall().Function(functions.ReadVersion).Numkeys(0).Build()).ToString()
		return version, Classify(ctx, err)
	})
}

// Silent is for how long the server has been asked, and has not answered.
func (c *Caller) Silent() time.Duration { return c.Pulse.Silent() }

func (c *Caller) command(function, key string, args ...string) rueidis.Completed {
	return c.Redis.B().Fcall().Function(function).Numkeys(1).Key(key).Arg(args...).Build()
}

// caching makes the server track the keys that the next command reads.
func (c *Caller) caching(key string) rueidis.Completed {
	command := c.Redis.B().Arbitrary("CLIENT", "CACHING", "YES").Build()
	if c.Slotted {
		return command.SetSlot(key)
	}
	return command
}

// call runs a function. What it may have changed is not believed any more.
func (c *Caller) call(ctx context.Context, function, key string, args ...string) (messages, error) {
	values, err := c.do(ctx, function, key, args...)
	c.Changed(key)
	return values, err
}

type messages = []rueidis.RedisMessage

// do runs a function.
func (c *Caller) do(ctx context.Context, function, key string, args ...string) (values messages, err error) {
	c.Pulse.asked()
	if ctx.Done() == nil {
		values, err = c.run(ctx, function, key, args)
	} else {
		values, err = c.fly(ctx, function, key, args)
	}
	c.Pulse.done(answered(err))
	if err == nil {
		c.Heard()
	}
	return values, err
}

// run is do without a guard. With AutoLoad it loads a library that was missing, and runs the
// function again: nothing ran.
func (c *Caller) run(ctx context.Context, function, key string, args []string) (messages, error) {
	values, err := c.once(ctx, function, key, args)
	if !errors.Is(err, ErrLibrary) {
		return values, err
	}
	if c.AutoLoad {
		unloaded := c.Load(ctx)
		values, err = c.once(ctx, function, key, args)
		if unloaded != nil && errors.Is(err, ErrLibrary) {
			return nil, unloaded
		}
	}
	return values, c.named(ctx, key, err)
}

func (c *Caller) once(ctx context.Context, function, key string, args []string) (messages, error) {
	values, err := c.Redis.Do(ctx, c.command(function, key, args...)).ToArray()
	return values, c.classify(ctx, err)
}

// ask is do by a tracked call.
func (c *Caller) ask(ctx context.Context, function, key string, args ...string) (messages, error) {
	values, err := guard(ctx, c.Closing, func(ctx context.Context) (messages, error) {
		results := c.Redis.DoMulti(ctx, c.caching(key), c.command(function, key, args...))
		if err := results[0].Error(); err != nil {
			c.Cached(err)
		}
		values, err := results[1].ToArray()
		if err = c.classify(ctx, err); !c.AutoLoad {
			err = c.named(ctx, key, err)
		}
		return values, err
	})
	if c.AutoLoad && errors.Is(err, ErrLibrary) {
		return c.do(ctx, function, key, args...)
	}
	if err == nil {
		c.Heard()
	}
	return values, err
}
