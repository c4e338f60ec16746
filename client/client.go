package client

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/local"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/redis/rueidis"
)

// Client takes locks on one deployment: a single server, a primary with replicas, Sentinel or
// Cluster; or on a majority of several servers, see OpenQuorum. It is safe for concurrent use, and one
// per process is enough: it renews all its locks from one goroutine and hears of hand-offs on one
// channel per hash slot (on one channel in all without Cluster).
type Client struct {
	core
	deployments []*deployment
	histories   sync.Map // OpenQuorum: the replication ids of the servers
	cfg         Config
	settings    settings // the Config's part that calls may change

	identity string        // 'host:pid:id', the head of every owner string
	id       string        // 96 random bits
	seq      atomic.Uint64 // the rest of owner strings, and ids of holds
	random   atomic.Uint64 // the state of jitter

	lines *lines
	gate  gate
	stop  context.CancelCauseFunc // ends core.closing
}

// New returns a Client over a rueidis client that stays the caller's: Close does not close it. It
// sends no command; a library that is missing on the server is reported by the first call.
//
// Every setting of rueidis works, and these are what Open would set: PipelineMultiplex -1, or else
// a late call can overtake the one that undoes it; no ConnLifetime, which would repeat commands
// that must not be; no SendToReplicas for SSUBSCRIBE, or else waiting means polling. Without Open
// there is no client-side caching.
//
// Errors: ErrArgument for a bad Config.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, fmt.Errorf("holdfast: new: %w: redis must not be nil", ErrArgument)
	}
	cfg, set, err := cfg.complete(false)
	if err != nil {
		return nil, fmt.Errorf("holdfast: new: %w", err)
	}
	c := build(cfg, set)
	c.slotted = redis.Mode() == rueidis.ClientModeCluster
	d := c.deploy(nil)
	d.connected(redis)
	c.calls = one{d.calls()}
	c.start()
	return c, nil
}

// build makes the parts of a Client that know no server.
func build(cfg Config, set settings) *Client {
	c := &Client{cfg: cfg, settings: set}
	c.journal.log, c.journal.observer, c.observer = cfg.Logger, cfg.Observer, cfg.Observer
	c.identify()
	c.closing, c.stop = context.WithCancelCause(context.Background())
	c.gate.idle = make(chan struct{})
	c.lines = local.New[*held, turn, shows]()
	c.registry = newRegistry()
	c.departed = newDeparted()
	return c
}

// deploy adds a deployment, without a connection yet.
func (c *Client) deploy(w *wires) *deployment {
	if c.cache == nil {
		c.cache = tracking.New(c.slotted, c.changed)
	}
	d := &deployment{wires: w}
	d.caller = fcall.Caller{Slotted: c.slotted, Pulse: fcall.NewPulse(), AutoLoad: c.cfg.AutoLoad, Heard: c.answered, Changed: c.cache.Drop,
		Cached: c.uncached, Closing: c.closing}
	c.deployments = append(c.deployments, d)
	return d
}

// start makes the parts that need calls.
func (c *Client) start() {
	c.inbox = inbox.New(inbox.Config{Redis: c.messenger, Slotted: c.slotted, Prefix: c.cfg.Prefix, ID: c.id, Closing: c.closing.Done(), Denied: denied,
		Broken: c.broken, Unclaimed: c.unclaimed, Changed: c.resubscribed, Refused: c.journal.unsubscribed})
	c.keepalive = newKeepalive(newFlights(c.calls, c.inbox, &c.journal))
}

// messenger is where a slot's messages come from.
func (c *Client) messenger(slot uint16) rueidis.Client {
	if c.quorum != nil {
		return c.deployments[slot].redis()
	}
	return c.deployments[0].redis()
}

// Redis returns the rueidis client, for commands of the caller's own; nil if there are several. It
// must not be closed by those who got it by Open.
func (c *Client) Redis() rueidis.Client {
	if c.quorum != nil {
		return nil
	}
	return c.deployments[0].redis()
}

// answered notes that the server has answered.
func (c *Client) answered() {
	c.cache.Heard()
	c.journal.answered()
}

// key is the Redis key of a lock.
func (c *Client) key(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%w: the lock's name must not be empty", ErrArgument)
	}
	if c.cfg.NoPrefix {
		return name, nil
	}
	return c.cfg.Prefix + name, nil
}

// jitter is a random part of d, so that clients do not act in step.
func (c *Client) jitter(d time.Duration) time.Duration {
	// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators)
	x := c.random.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return time.Duration((x ^ x>>31) % uint64(d))
}

// next returns an id that this client never used before.
func (c *Client) next() string { return strconv.FormatUint(c.seq.Add(1), 36) }

// bytes of the host's name; of a longer one the end, which tells the pods of a deployment apart
const maxHost = 63

// identify names this client among all: who it is for people, and 96 random bits.
func (c *Client) identify() {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r <= ' ' || r == ':' || r > '~' {
			return '-'
		}
		return r
	}, host)
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	c.random.Store(binary.LittleEndian.Uint64(random[:]))
	c.id = base64.RawURLEncoding.EncodeToString(random[:])
	c.identity = fmt.Sprintf("%s:%d:%s", host[max(0, len(host)-maxHost):], os.Getpid(), c.id)
}

// owner makes the owner string of one acquisition: 'host:pid:client:asked.number[:label]', asked in
// milliseconds since 1970, and it and number in base 36. It is never used twice.
func (c *Client) owner(label string) string {
	b := make([]byte, 0, 96)
	b = append(append(b, c.identity...), ':')
	b = append(strconv.AppendInt(b, time.Now().UnixMilli(), 36), '.')
	b = strconv.AppendUint(b, c.seq.Add(1), 36)
	if label != "" {
		b = append(append(b, ':'), label...)
	}
	return string(b)
}
