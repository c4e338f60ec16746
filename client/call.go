package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// This file is the only one that speaks FCALL: one method per function, and one place that maps what can come back.

// reply is what the functions answer: taken (yes), or how the lock stands.
type reply struct {
	yes    bool
	fence  int64 // yes
	holds  int64 // yes
	pttl   int64 // no: milliseconds left of the holder's lease; -1: none
	holder string
	place  int64 // no: waiters, or for wait the position in line
	server int64 // wait, no: the server's clock in milliseconds
}

func (r reply) busy(name string) *BusyError {
	return &BusyError{Name: name, Holder: parseHolder(r.holder, 0), Remaining: time.Duration(r.pttl) * time.Millisecond, Waiters: int(r.place)}
}

func (c *Client) command(function, key string, args ...string) rueidis.Completed {
	return c.redis.B().Fcall().Function(function).Numkeys(1).Key(key).Arg(args...).Build()
}

// caching makes the server track the keys that the next command reads.
func (c *Client) caching(key string) rueidis.Completed {
	command := c.redis.B().Arbitrary("CLIENT", "CACHING", "YES").Build()
	if c.slotted {
		return command.SetSlot(key)
	}
	return command
}

// cached looks at the answer to caching: a refusal ends all use of it, a lost connection does not.
func (c *Client) cached(ctx context.Context, result rueidis.RedisResult) {
	if err := result.Error(); err != nil {
		if err = classify(ctx, err); !unknown(err) && ctx.Err() == nil {
			c.cache.off(err)
		}
	}
}

// ask is call for a function that changes nothing of what others were told, with the key tracked from now on.
func (c *Client) ask(ctx context.Context, function, key string, args ...string) ([]rueidis.RedisMessage, error) {
	results := c.redis.DoMulti(ctx, c.caching(key), c.command(function, key, args...))
	c.cached(ctx, results[0])
	values, err := results[1].ToArray()
	if err != nil {
		if err = classify(ctx, err); c.cfg.AutoLoad && errors.Is(err, ErrLibrary) {
			return c.call(ctx, function, key, args...)
		}
	}
	return values, err
}

// call runs a function. What it may have changed is not believed any more.
func (c *Client) call(ctx context.Context, function, key string, args ...string) ([]rueidis.RedisMessage, error) {
	values, err := c.do(ctx, function, key, args...)
	c.cache.drop(key)
	return values, err
}

// do runs a function. On 'Function not found' nothing ran, so with AutoLoad it loads the library and runs it again.
func (c *Client) do(ctx context.Context, function, key string, args ...string) ([]rueidis.RedisMessage, error) {
	values, err := c.redis.Do(ctx, c.command(function, key, args...)).ToArray()
	if err == nil {
		return values, nil
	}
	err = classify(ctx, err)
	if c.cfg.AutoLoad && errors.Is(err, ErrLibrary) {
		if err = c.load(ctx); err == nil {
			values, err = c.redis.Do(ctx, c.command(function, key, args...)).ToArray()
			if err != nil {
				err = classify(ctx, err)
			}
		}
	}
	return values, err
}

// load puts the library on every primary that has none. It never replaces one.
func (c *Client) load(ctx context.Context) error {
	for _, node := range c.redis.Nodes() {
		err := node.Do(ctx, node.B().FunctionLoad().FunctionCode(functions.Source).Build()).Error()
		if err == nil || strings.Contains(err.Error(), "already exists") || strings.HasPrefix(err.Error(), "READONLY") {
			continue
		}
		return fmt.Errorf("%w: loading it failed: %w", ErrLibrary, classify(ctx, err))
	}
	return nil
}

func (c *Client) acquire(ctx context.Context, key, owner, ttl string, block int64) (reply, error) {
	if block == 1 {
		return decodeReply(c.call(ctx, functions.Acquire, key, owner, ttl))
	}
	return decodeReply(c.call(ctx, functions.Acquire, key, owner, ttl, strconv.FormatInt(block, 10)))
}

// acquireTracked is acquire of a key that was found busy before: if it still is, that is told once for all tries.
func (c *Client) acquireTracked(ctx context.Context, key, owner, ttl string) (reply, error) {
	return decodeReply(c.ask(ctx, functions.Acquire, key, owner, ttl))
}

func (c *Client) acquireHold(ctx context.Context, key, owner, ttl string, hold string) (reply, error) {
	return decodeReply(c.call(ctx, functions.AcquireReentrant, key, owner, ttl, hold))
}

func (c *Client) renew(ctx context.Context, key, owner, ttl string) (reply, error) {
	return decodeReply(c.call(ctx, functions.Renew, key, owner, ttl))
}

// release gives back one hold, the unnamed one for "". yes: it is given back.
func (c *Client) release(ctx context.Context, key, owner, hold string) (reply, error) {
	if hold == "" {
		return decodeReply(c.call(ctx, functions.Release, key, owner))
	}
	return decodeReply(c.call(ctx, functions.Release, key, owner, hold))
}

// releaseRun is release by a holder that may have reserved tokens: it says which was the last one used.
func (c *Client) releaseRun(ctx context.Context, h *held, hold string) (reply, error) {
	if h.top == h.first {
		return c.release(ctx, h.key, h.owner, hold)
	}
	return decodeReply(c.call(ctx, functions.Release, h.key, h.owner, hold, strconv.FormatInt(h.fence, 10)))
}

func (c *Client) wait(ctx context.Context, key, owner, ttl string, block int64, channel string, maxWait time.Duration) (reply, error) {
	args := append(make([]string, 0, 5), owner, ttl, channel)
	if block > 1 || maxWait > 0 {
		args = append(args, strconv.FormatInt(block, 10))
	}
	if maxWait > 0 {
		args = append(args, strconv.FormatInt(max(1, maxWait.Milliseconds()), 10))
	}
	return decodeReply(c.call(ctx, functions.Wait, key, args...))
}

// leave ends a wait, and gives the lock back if it was handed over meanwhile.
func (c *Client) leave(ctx context.Context, key, owner string) error {
	_, err := c.call(ctx, functions.Leave, key, owner)
	return err
}

// leaveLine ends a wait and nothing else.
func (c *Client) leaveLine(ctx context.Context, key, owner string) error {
	_, err := c.call(ctx, functions.Leave, key, owner, "line")
	return err
}

// decodeReply reads '1, fence, ttl, holds', '1, n' (release) and '0, pttl, owner, n [, server_ms]'.
func decodeReply(values []rueidis.RedisMessage, err error) (r reply, _ error) {
	if err != nil {
		return r, err
	}
	d := decoder{values: values}
	switch d.integer(0) {
	case 1:
		r.yes = true
		if len(values) == 2 {
			r.holds = d.integer(1)
		} else {
			r.fence, r.holds = d.integer(1), d.integer(3)
		}
	case 0:
		r.pttl, r.holder, r.place = d.integer(1), d.text(2), d.integer(3)
		if len(values) == 5 {
			r.server = d.integer(4)
		}
	default:
		d.fail()
	}
	return r, d.err
}

// decoder reads a flat reply and remembers the first thing that is not as the contract says.
type decoder struct {
	values []rueidis.RedisMessage
	err    error
}

func (d *decoder) integer(i int) int64 {
	if i < len(d.values) {
		if n, err := d.values[i].AsInt64(); err == nil {
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) text(i int) string {
	if i < len(d.values) {
		if s, err := d.values[i].ToString(); err == nil {
			return s
		}
	}
	d.fail()
	return ""
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: its reply is not of contract 1: %v", ErrLibrary, d.values)
	}
}

// classify maps an error of rueidis to one of ours. The text of the server stays in it. The end of the caller's context
// stays what it is; a time-out of the connection looks alike and is not.
func classify(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return err
	}
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case functions.CodeArg:
		if strings.HasPrefix(text, functions.CodeArg+" wrong number of arguments") { // this client never sends one: the library is older
			return &answerError{ErrLibrary, text + "; run: holdfast load --addr HOST:PORT"}
		}
		return &answerError{ErrArgument, text}
	case functions.CodeFull:
		return &answerError{ErrLineFull, text}
	case functions.CodeType:
		return &answerError{ErrNotALock, text}
	case functions.CodeServer, "NOPERM", "NOAUTH", "WRONGPASS":
		return &answerError{ErrDenied, text}
	}
	if strings.HasPrefix(text, "Function not found") {
		return &answerError{ErrLibrary, text + "; run: holdfast load --addr HOST:PORT"}
	}
	return &answerError{ErrUnreachable, "it refuses: " + text} // LOADING, READONLY, CLUSTERDOWN, OOM, ...
}

// answerError is an error that the server answered: nothing of the call was done.
type answerError struct {
	kind error
	text string
}

func (e *answerError) Error() string { return e.kind.Error() + ": " + e.text }
func (e *answerError) Unwrap() error { return e.kind }

// unknown tells that a call may have been done although it failed: its request may have left, and no answer came.
func unknown(err error) bool {
	var answer *answerError
	var dial *net.OpError
	return !errors.As(err, &answer) && !(errors.As(err, &dial) && dial.Op == "dial")
}
