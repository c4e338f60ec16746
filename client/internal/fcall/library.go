package fcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// slowest is how long Load waits for the other nodes once one has answered.
const slowest = time.Second

// Load puts the library on every primary that has none. It never replaces one. A node that does not
// answer, a dead replica say, does not keep the others from it: the call that missed the library is
// best repeated whatever Load returns. It returns when ctx ends.
func (c *Caller) Load(ctx context.Context) (err error) {
	nodes := c.Redis.Nodes()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(nodes))
	for addr, node := range nodes {
		go func() { answers <- load(ctx, addr, node) }()
	}
	var enough <-chan time.Time
	for range nodes {
		select {
		case answer := <-answers:
			if answer != nil && (err == nil || failed(err)) { // a refusal tells more
				err = answer
			}
			if enough == nil && !failed(answer) {
				enough = time.After(slowest)
			}
		case <-enough:
			return err
		case <-ctx.Done(): // not rueidis' to notice: it may be waiting for a connect that another call began
			return cmp.Or(err, Classify(ctx, ctx.Err()))
		}
	}
	return err
}

// Heal loads the library, if AutoLoad says so, after a call failed with err. It reports whether the
// call is to be repeated.
func (c *Caller) Heal(ctx context.Context, err error) bool {
	return c.AutoLoad && errors.Is(err, ErrLibrary) && c.Load(ctx) == nil
}

// load puts the library on one node. A replica gets it from its primary.
func load(ctx context.Context, addr string, node rueidis.Client) error {
	err := node.Do(undated{ctx}, node.B().FunctionLoad().FunctionCode(functions.Source).Build()).Error()
	if err == nil || strings.Contains(err.Error(), "already exists") || strings.HasPrefix(err.Error(), "READONLY") {
		return nil
	}
	return notLoaded(addr, Classify(ctx, err))
}

// notLoaded is the error of a call whose library is missing, and could not be loaded at addr because
// of err: of err's kind, which says whether it helps to try again.
func notLoaded(addr string, err error) error {
	if errors.Is(err, ErrInvalid) {
		return fmt.Errorf("%w: loading it at %s failed: %w", ErrLibrary, addr, err)
	}
	return fmt.Errorf("the functions library is missing, and loading it at %s failed: %w", addr, err)
}

// anyNode is in the hint of errors that are not known to be of one node.
const anyNode = "HOST:PORT"

// hint is what to do about a missing library.
func hint(addr string) string { return "; run: holdfast load --addr " + addr }

// named makes the error of a call whose library is missing say at which node. It asks for that, so it
// is for calls that have failed.
func (c *Caller) named(ctx context.Context, key string, err error) error {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	text, hinted := strings.CutSuffix(refusal.Text, hint(anyNode))
	if !hinted {
		return err
	}
	addr := c.serving(ctx, key)
	if addr == "" {
		return err
	}
	return &Refusal{Kind: refusal.Kind, Text: text + " at " + addr + hint(addr), partial: refusal.partial}
}

// serving asks which node runs the calls for a key, as they are redirected: also to one that is
// importing the key's slot. It returns "" if that is not found out at once.
func (c *Caller) serving(ctx context.Context, key string) string {
	if !c.Slotted {
		nodes := c.Redis.Nodes()
		for addr := range nodes {
			if len(nodes) == 1 {
				return addr
			}
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, nudge)
	defer cancel()
	to := c.home(ctx, key)
	for range 4 { // the slot can move meanwhile
		b := c.NewBatch(1, Copies{})
		b.Look(false, key)
		err := b.send(ctx, to)[0].Err
		word, addr := redirect(err)
		switch {
		case err == nil || errors.Is(err, ErrInvalid):
			return to.addr
		case addr == "":
			return ""
		}
		addr = address(addr, to.addr)
		node := c.Redis.Nodes()[addr]
		if node == nil {
			return addr
		}
		to = place{node: node, addr: addr, asking: word == "ASK"}
	}
	return ""
}
