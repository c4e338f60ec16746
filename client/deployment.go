package client

import (
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// deployment is what one rueidis client leads to.
type deployment struct {
	wires  *wires       // of Open; nil: the rueidis client is the caller's
	caller fcall.Caller // without its Redis
	link   atomic.Pointer[fcall.Caller]

	connecting sync.WaitGroup // of OpenQuorum
	failed     atomic.Pointer[error]
}

// connected begins to use a rueidis client.
func (d *deployment) connected(redis rueidis.Client) {
	d.caller.Redis, d.caller.Demoted = redis, d.demoted
	d.link.Store(&d.caller)
}

// redis is the rueidis client, or nil.
func (d *deployment) redis() rueidis.Client {
	if c := d.calls(); c != nil {
		return c.Redis
	}
	return nil
}

// calls is who makes calls, or nil.
func (d *deployment) calls() *fcall.Caller { return d.link.Load() }

// demoted ends the connections to a server that is a replica now: a name in the DNS, or a proxy, may
// lead to the primary. In a Cluster, or behind Sentinel, rueidis finds it.
func (d *deployment) demoted() {
	if d.wires != nil && d.redis().Mode() == rueidis.ClientModeStandalone {
		d.wires.renew()
	}
}

// close ends what Open made.
func (d *deployment) close() {
	if d.wires == nil {
		return
	}
	d.connecting.Wait()
	if redis := d.redis(); redis != nil {
		redis.Close()
	}
}
