package fcall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// library is what a Caller knows of its loads.
type library struct {
	mu    sync.Mutex
	began time.Time     // the last one
	over  chan struct{} // closed when that is over

	err atomic.Pointer[error] // why the last one failed, or nil
}

// Heal loads the library, with AutoLoad, if err is of a call that found none. It reports whether
// to repeat the call, once. It returns when ctx ends.
func (c *Caller) Heal(ctx context.Context, err error) bool {
	if !c.cfg.AutoLoad || !refuses(err, notFound) || ctx.Err() != nil {
		return false
	}
	l := &c.library
	l.mu.Lock()
	if time.Since(l.began) >= loadPause {
		l.began, l.over = time.Now(), make(chan struct{})
		go c.load(l.over)
	}
	over := l.over
	l.mu.Unlock()
	select {
	case <-over:
		return true
	case <-ctx.Done():
	case <-c.cfg.Closing.Done():
	}
	return false
}

// load puts the library on every primary that has none, for all who wait. It never replaces one.
func (c *Caller) load(over chan struct{}) {
	ctx, cancel := context.WithTimeout(c.cfg.Closing, loadTime)
	defer cancel()
	nodes := c.cfg.Redis.Nodes()
	answers := make(chan error, len(nodes))
	for addr, node := range nodes {
		go func() { answers <- loadAt(ctx, addr, node) }()
	}
	var err error
	there := false
	for range nodes {
		select {
		case answer := <-answers:
			there = there || answer == nil
			if answer != nil && !errors.Is(err, ErrInvalid) { // a refusal tells more
				err = answer
			}
		case <-ctx.Done(): // rueidis may be waiting for a connect
		}
	}
	if there && !errors.Is(err, ErrInvalid) {
		err = nil // it may be a replica that does not answer
	}
	c.library.err.Store(&err)
	close(over)
}

// loadAt puts the library on one node. A replica gets it from its primary.
func loadAt(ctx context.Context, addr string, node rueidis.Client) error {
	load := node.B().FunctionLoad().FunctionCode(functions.Source).Build()
	err := node.Do(unending{ctx}, load).Error()
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

// Explain adds to the error of a call what is wrong with the library and what to run, if
// that may be the cause. It asks the node of the key, or any, for its version, so use it last, and
// once: it changes the refusal that Decode returned.
func (c *Caller) Explain(ctx context.Context, err error, key ...string) error {
	refusal := refused(err)
	if refusal == nil || refusal.Kind != ErrLibrary && !refuses(err, functions.CodeArg+" ") {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, explains)
	defer cancel()
	version, problem := Guard(limited, c.cfg.Closing, c, func(ctx context.Context) (string, error) {
		return c.version(ctx, key...)
	})
	unloaded := *c.library.err.Load()
	// any node of the deployment will do
	addr := append(slices.Sorted(maps.Keys(c.cfg.Redis.Nodes())), "HOST:PORT")[0]
	if other := mismatch(version, addr); problem == nil && other != "" {
		refusal.Kind, refusal.Text = ErrLibrary, other
	} else if unloaded != nil && refuses(err, notFound) {
		return unloaded
	} else if refuses(err, tooOld) {
		refusal.Text += "; Redis 7.0 or later is needed"
	} else if refusal.Kind == ErrLibrary {
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
