// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// library is what a Caller knows of the libraries of its nodes.
type library struct {
	mu    sync.Mutex
	began time.Time       // the last look at them
	over  <-chan struct{} // closed when that is over

	mismatch string // what it found: one of another contract
	other    bool   // ... or version, which can lack a function
	unloaded error  // why one could not be loaded
}

// Heal looks at the library of every node, if err may be its fault, and with AutoLoad loads it where
// there is none. It reports whether to repeat the call, once. It returns when ctx ends.
func (c *Caller) Heal(ctx context.Context, err error) bool {
	if !doubtful(refused(err)) || ctx.Err() != nil {
		return false
	}
	l := &c.library
	l.mu.Lock()
	if time.Since(l.began) >= lookPause {
		limited, done := context.WithTimeout(c.Closing, lookTime)
		l.began, l.over, l.mismatch, l.other, l.unloaded = time.Now(), limited.Done(), "", false, nil
		go c.look(limited, done)
	}
	over := l.over
	l.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return c.AutoLoad && refuses(err, notFound) && ctx.Err() == nil
}

// look looks at all nodes, for all who wait.
func (c *Caller) look(ctx context.Context, done func()) {
	defer done()
	var all sync.WaitGroup
	for addr, node := range c.Redis.Nodes() {
		all.Go(func() { c.lookAt(unending{undated{ctx}}, addr, node) })
	}
	all.Wait()
}

func (c *Caller) lookAt(ctx context.Context, addr string, node rueidis.Client) {
	var unloaded error
	if c.AutoLoad {
		unloaded = load(ctx, addr, node)
	}
	found, _ := node.Do(ctx, node.B().Fcall().Function(functions.ReadVersion).Numkeys(0).Build()).ToString()
	l := &c.library
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mismatch = cmp.Or(mismatch(found, addr), l.mismatch)
	l.other = l.other || found != "" && found != functions.Version
	if !errors.Is(l.unloaded, ErrInvalid) { // a refusal tells more
		l.unloaded = cmp.Or(unloaded, l.unloaded)
	}
}

// load puts the library on a node that has none. It never replaces one, and a replica gets it from
// its primary.
func load(ctx context.Context, addr string, node rueidis.Client) error {
	err := node.Do(ctx, node.B().FunctionLoad().FunctionCode(functions.Source).Build()).Error()
	if err == nil || strings.Contains(err.Error(), "already exists") ||
		strings.HasPrefix(err.Error(), "READONLY") {
		return nil
	}
	return notLoaded(addr, Classify(context.Background(), err))
}

// notLoaded is the error of a call that found no library, after loading it at addr failed with err.
// It has the kind of err, which says whether another try helps.
func notLoaded(addr string, err error) error {
	if errors.Is(err, ErrInvalid) {
		return fmt.Errorf("%w: loading it at %s failed: %w", ErrLibrary, addr, err)
	}
	return fmt.Errorf("the functions library is missing, and loading it at %s failed: %w", addr, err)
}

// doubtful reports whether the library may be another one than this client's.
func doubtful(refusal *Refusal) bool {
	return refusal != nil &&
		(refusal.Kind == ErrLibrary || strings.HasPrefix(refusal.Text, functions.CodeArg+" "))
}

// Explain adds to the error of a call what is wrong with the library and what to run, if
// that may be the cause: what Heal saw. Use it last, and once: it changes the refusal that Decode
// returned.
func (c *Caller) Explain(err error) error {
	refusal := refused(err)
	if !doubtful(refusal) {
		return err
	}
	l := &c.library
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mismatch != "":
		refusal.Kind, refusal.Text = ErrLibrary, l.mismatch
	case l.unloaded != nil && refuses(err, notFound):
		return l.unloaded
	case c.AutoLoad && !l.other && refuses(err, notFound): // gone again within lookPause
		refusal.Kind, refusal.Text = ErrUnreachable, refusal.Text+"; it is looked for again in a second"
	case refuses(err, tooOld):
		refusal.Text += "; Redis 7.0 or later is needed, and a MasterSet with the address of a sentinel"
	case refusal.Kind == ErrLibrary:
		// any node of the deployment will do
		addr := append(slices.Sorted(maps.Keys(c.Redis.Nodes())), "HOST:PORT")[0]
		refusal.Text += "; run: holdfast load --addr " + addr
	}
	return err
}

// mismatch says which of a library and this client is too old, if their contracts differ: the major
// numbers of their versions.
func mismatch(version, addr string) string {
	var theirs, ours int
	_, _ = fmt.Sscan(functions.Version, &ours)
	if _, err := fmt.Sscan(version, &theirs); err != nil || theirs == ours {
		return ""
	}
	text := fmt.Sprintf("the server has version %s, and this client needs %d: ", version, ours)
	if theirs > ours {
		return text + "the client is too old; run: go get github.com/holdfast-go/holdfast@latest"
	}
	return text + "the library is too old; run: holdfast load --force --addr " + addr
}
