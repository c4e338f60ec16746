// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

const (
	batch  = 250       // keys that a server looks at in one SCAN: all others wait for so long
	sparse = 4 * batch // where few of them are locks: that is as quick
	// So many locks are asked about at once, in pipelines by rueidis: few for each server, because all
	// others wait behind them, and one more for each step of the way there, for it holds more.
	asked, mostAsked = 8, 64
	askedStep        = 100 * time.Microsecond
)

// Filter says which locks List returns. The zero value is all.
type Filter struct {
	Held      bool          // those that are held
	Waited    bool          // those with waiters
	Pattern   string        // those whose names match this glob, as SCAN has it; "": all
	OlderThan time.Duration // those that are held for longer
	Holder    string        // those whose holder has this in its owner string, host, process or label
	Order     Order         // of the list; "": by name
	Limit     int           // at most so many, the first ones of the order, "" here: by waiters; 0: all
	Pages     int           // at most so many SCANs of a server; 0: until its end
	Keys      int           // at most so many keys of a server, whichever are found first; 0: all
	Any       bool          // whichever are found first: the look ends at the limit
}

func (f Filter) wants(l Lock) bool {
	return (l.Held || l.Kept() || l.Waiters > 0) && (l.Held || !f.Held) && (l.Waiters > 0 || !f.Waited) &&
		l.HeldFor() >= f.OlderThan && slices.ContainsFunc(append(l.Holders, l), func(h Lock) bool {
		return strings.Contains(h.Who.String()+" "+h.Owner, f.Holder)
	})
}

// Order is how locks are sorted.
type Order string

// The orders. Those that are equal are in the order of their names.
const (
	ByWaiters Order = "waiters" // most first, then as by age
	ByAge     Order = "age"     // those that are held longest first
	ByName    Order = "name"
)

// Orders are all orders, in the order in which people go through them.
var Orders = []Order{ByWaiters, ByAge, ByName}

// Sort sorts locks.
func Sort(all []Lock, by Order) {
	slices.SortFunc(all, func(a, b Lock) int {
		waiters, age := cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(a.begin(), b.begin())
		switch by {
		case ByName:
			waiters, age = 0, 0
		case ByAge:
			waiters = 0
		}
		return cmp.Or(waiters, age, cmp.Compare(a.Name, b.Name))
	})
}

// List is the result of one look at all locks.
type List struct {
	Locks   []Lock   // in the filter's order
	Total   int      // how many the filter wants, over the limit too; of these
	Held    int      // are held
	Waiting int      // wait
	Foreign []string // keys under the prefix that are no locks
	Keys    int      // keys under the prefix that were found
}

// More is how many locks the limit left out.
func (l List) More() int { return l.Total - len(l.Locks) }

// List looks at all keys under the prefix: by SCAN in batches on each primary, and by
// holdfast_inspect for each key. A lock that is taken or given back meanwhile may be missing. The
// error joins those of primaries and keys that could not be asked; the list has the rest. The limit
// bounds what is kept, not what is looked at: the totals are of all. found, if not nil, has how many
// keys there are after each batch, and is not called concurrently.
func (v *View) List(ctx context.Context, f Filter, found func(keys int)) (List, error) {
	return v.list(ctx, &look{filter: f, found: found})
}

func (v *View) list(ctx context.Context, l *look) (List, error) {
	nodes, err := v.primaries(ctx)
	if err != nil {
		return List{}, err
	}
	ctx, l.stop = context.WithCancel(ctx)
	defer l.stop()
	sent := time.Now()
	l.view, l.seen, l.begun, l.begunHere = v, map[string]bool{}, v.Now(ctx), time.Now()
	keys := make(chan string, batch)
	var scans, asks sync.WaitGroup
	for _, n := range nodes {
		scans.Go(func() { l.failed(n.addr, l.scan(ctx, n, keys)) })
	}
	for range min(mostAsked, asked*len(nodes)/len(v.servers())+int(l.begunHere.Sub(sent)/askedStep)) {
		asks.Go(func() {
			for key := range keys {
				l.ask(ctx, key)
			}
		})
	}
	scans.Wait()
	close(keys)
	asks.Wait()
	if v.need > 1 && l.asks == nil && len(nodes)-len(l.errors) >= v.need {
		// Every lock of a quorum is at one of those that were looked through. But rights are for people to mend.
		l.errors = slices.DeleteFunc(l.errors, func(err error) bool { return !strings.Contains(err.Error(), "NOPERM") })
	}
	l.shorten()
	Sort(l.list.Locks, cmp.Or(l.filter.Order, ByName))
	return l.list, errors.Join(l.errors...)
}

// look is one List under way.
type look struct {
	filter Filter
	// Of these, which may be nil, the first two are not called concurrently: with how many keys there
	// are, and with each lock, whatever the filter wants. The third says which locks may remember a
	// break that is news.
	found    func(int)
	each     func(l Lock, wanted bool)
	suspects func(Lock) bool

	view             *View
	stop             context.CancelFunc
	begun, begunHere time.Time // by the server's clock, and by that of this machine

	mu     sync.Mutex
	list   List
	seen   map[string]bool // a slot that moves meanwhile, or a quorum, shows keys twice
	errors []error
	asks   error // the first one of a lock
	ended  bool  // by the limit, of a look for any
}

// now is the time by the server's clock, without asking for each lock.
func (l *look) now() time.Time { return l.begun.Add(time.Since(l.begunHere)) }

func (l *look) scan(ctx context.Context, n primary, keys chan<- string) error {
	if n.node == nil {
		return errors.New("no connection")
	}
	if err := n.still(ctx); err != nil {
		return err
	}
	count, sent := int64(batch), 0
	for cursor, pages := uint64(0), 1; ; pages++ {
		page, err := n.node.Do(ctx, l.page(n.node, cursor, count)).AsScanEntry()
		if err != nil {
			return err
		}
		for _, key := range l.fresh(page.Elements) {
			select {
			case keys <- key:
			case <-ctx.Done():
				return ctx.Err()
			}
			if sent++; sent == l.filter.Keys {
				return nil
			}
		}
		if count = batch; len(page.Elements) < batch/4 {
			count = sparse
		}
		if cursor = page.Cursor; cursor == 0 || pages == l.filter.Pages {
			return nil
		}
	}
}

func (l *look) page(node rueidis.Client, cursor uint64, count int64) rueidis.Completed {
	scan := node.B().Scan().Cursor(cursor).Match(Literal(l.view.prefix) + cmp.Or(l.filter.Pattern, "*")).Count(count)
	if l.view.prefix == "" {
		return scan.Type("hash").Build() // of all the strings of a database few are locks
	}
	return scan.Build()
}

// Literal escapes what a glob pattern would read in another way.
func Literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// fresh returns the keys that were not found before.
func (l *look) fresh(keys []string) (fresh []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if !l.seen[key] {
			l.seen[key] = true
			fresh = append(fresh, key)
		}
	}
	l.list.Keys = len(l.seen)
	if l.found != nil {
		l.found(l.list.Keys)
	}
	return fresh
}

func (l *look) ask(ctx context.Context, key string) {
	name := strings.TrimPrefix(key, l.view.prefix)
	if name == "" {
		l.skip(key)
		return
	}
	asked := l.now()
	info, err := l.view.Client.Inspect(ctx, name)
	switch {
	case errors.Is(err, client.ErrNotALock):
		l.skip(key)
	case err != nil:
		l.failed("", err)
	default:
		lock := lockOf(info, asked)
		// Inspect of a quorum does not name whom a lock is kept for, and none says who lost it.
		if lock.Kept() && lock.Owner == "" || l.suspects != nil && l.suspects(lock) {
			l.view.remember(ctx, &lock, asked)
		}
		if f := l.filter; f.Holder != "" || f.OlderThan > 0 || f.Order == ByAge {
			l.failed("", l.view.ask(ctx, &lock, asked))
		}
		l.add(lock)
	}
}

func (l *look) skip(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list.Foreign = append(l.list.Foreign, key)
}

func (l *look) add(lock Lock) {
	wanted := l.filter.wants(lock)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.each != nil {
		l.each(lock, wanted)
	}
	if !wanted {
		return
	}
	l.list.Total++
	l.list.Waiting += lock.Waiters
	if lock.Held {
		l.list.Held++
	}
	l.list.Locks = append(l.list.Locks, lock)
	switch limit := l.filter.Limit; {
	case limit == 0:
	case l.filter.Any && len(l.list.Locks) == limit:
		l.ended = true
		l.stop()
	case len(l.list.Locks) >= 2*limit+batch:
		l.shorten() // now and then, so that the work for each lock is small
	}
}

// shorten keeps as many locks as the limit allows: those to look at first.
func (l *look) shorten() {
	limit := l.filter.Limit
	if limit == 0 || len(l.list.Locks) <= limit {
		return
	}
	Sort(l.list.Locks, cmp.Or(l.filter.Order, ByWaiters))
	l.list.Locks = l.list.Locks[:limit]
}

// failed keeps an error, but not those that stopping makes. The first one of locks stops the look:
// the others would say the same.
func (l *look) failed(addr string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil || l.ended || l.asks != nil && errors.Is(err, context.Canceled):
	case addr != "":
		l.errors = append(l.errors, fmt.Errorf("%s: SCAN: %w", addr, err))
	case l.asks == nil:
		l.asks = err
		l.errors = append(l.errors, err)
		l.stop()
	}
}
