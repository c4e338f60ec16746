package redis

// image is what a server has on disk, and what it sends to a new replica.
type image struct {
	keys    map[string]*entry
	sources []string // of libraries, in the order of their names
}

// snapshot copies the node's data.
func (n *Node) snapshot() *image {
	im := &image{keys: map[string]*entry{}}
	for k, e := range n.keys {
		im.keys[k] = e.clone()
	}
	for _, name := range sortedKeys(n.libs) {
		im.sources = append(im.sources, n.libs[name].source)
	}
	return im
}

// restore replaces the node's data. Libraries are loaded anew: their memory is lost.
func (n *Node) restore(im *image) {
	n.keys, n.libs = map[string]*entry{}, map[string]*library{}
	for k, e := range im.keys {
		n.keys[k] = e.clone()
	}
	for _, source := range im.sources {
		if _, err := n.loadLibrary(source, true); err != "" {
			panic("redis: a library of an image does not load: " + string(err))
		}
	}
	n.armSweep()
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
