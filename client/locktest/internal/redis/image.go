// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"iter"
	"maps"
)

// image is what a server has on disk, and what it sends to a replica: all of it, or what has changed.
type image struct {
	keys map[string]*entry // nil: deleted
	libs map[string]string // sources; empty: deleted
}

// copied returns a copy of these keys and libraries.
func (n *Node) copied(keys, libs iter.Seq[string]) *image {
	im := &image{map[string]*entry{}, map[string]string{}}
	for key := range keys {
		im.keys[key] = n.keys[key].clone()
	}
	for name := range libs {
		im.libs[name] = ""
		if lib := n.libs[name]; lib != nil {
			im.libs[name] = lib.source
		}
	}
	return im
}

// snapshot copies all of the node's data.
func (n *Node) snapshot() *image { return n.copied(maps.Keys(n.keys), maps.Keys(n.libs)) }

// restore replaces the node's data.
func (n *Node) restore(im *image) {
	n.keys, n.libs = map[string]*entry{}, map[string]*library{}
	n.begin()
	n.take(im)
	n.unit = nil
	n.armSweep()
}

// take makes an image's changes. Libraries are loaded anew: their memory is lost.
func (n *Node) take(im *image) {
	for _, key := range sortedKeys(im.keys) {
		n.edit(key)
		delete(n.keys, key)
		if e := im.keys[key]; e != nil {
			n.keys[key] = e.clone()
		}
	}
	for _, name := range sortedKeys(im.libs) {
		delete(n.libs, name)
		if source := im.libs[name]; source != "" {
			if _, err := n.loadLibrary(source, true); err != "" {
				panic("redis: a library of an image does not load: " + string(err))
			}
		}
	}
}

// Save writes the data to the node's disk, for Restart(FromSave).
func (n *Node) Save() { n.mu.Lock(); n.saved = n.snapshot(); n.mu.Unlock() }

// Disk is what a restarted server finds.
type Disk int

const (
	Everything Disk = iota // as with appendfsync always
	FromSave               // what it was at the last Save, nothing if there was none
	Nothing                // no persistence: the functions are gone too
)

// Restart ends the process, if it runs, and starts it again. Function libraries come back with
// their data, and without their memory. Keys whose time has passed meanwhile are gone. A replica
// stays one, and synchronises anew.
func (n *Node) Restart(disk Disk) {
	n.mu.Lock()
	var im *image
	switch disk {
	case Everything:
		im = n.snapshot()
	case FromSave:
		im = n.saved
	}
	n.stop()
	n.start()
	if im != nil {
		n.restore(im)
	}
	primary, replicas := n.primary, n.replicas
	n.replicas = nil
	n.mu.Unlock()
	if primary != nil {
		n.world.follow(n, primary, true)
	}
	for _, r := range replicas {
		n.world.follow(r, n, true)
	}
}
