package client

import "sync"

// departed are the last owners of this client that stood in a server's line and are gone: served,
// or given up. After a failover the new primary can have them in its line still. What it grants to
// them is given back at once; otherwise each would cost the others the time of an unconfirmed
// lease.
type departed struct {
	mu     sync.Mutex
	owners [remembered]string
	next   int
	keys   map[string]string // of their locks, by owner
}

const remembered = 1024

func newDeparted() *departed { return &departed{keys: map[string]string{}} }

func (d *departed) add(owner, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, d.owners[d.next])
	d.owners[d.next], d.keys[owner] = owner, key
	d.next = (d.next + 1) % remembered
}

func (d *departed) key(owner string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, ok := d.keys[owner]
	return key, ok
}
