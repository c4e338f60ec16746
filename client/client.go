// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/queue"
	"github.com/holdfast-go/holdfast/client/internal/replicas"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/redis/rueidis"
)

// Client takes locks on one deployment: a single server, a primary with replicas, Sentinel or
// Cluster; or on a majority of several servers, see package quorum. It is safe for concurrent use,
// and one per process is enough: it renews all its locks by one timer and receives hand-offs on
// one channel per hash slot (on one channel in all without Cluster).
type Client struct {
	settings *settings      // of calls without options
	redis    rueidis.Client // nil: several servers
	lost     *atomic.Uint32 // connections, see fcall.Config; nil: not known
	backend  fcall.Backend

	cache  *tracking.Cache
	inbox  *inbox.Inbox // nil: several servers
	keeper *keeper.Keeper
	queues *queue.Queues
	events events

	inflight inflight
	releases inflight // calls of Release
	values   values
	closing  context.Context // ends with ErrClosed when Close is called
	stop     context.CancelCauseFunc
	leaving  context.Context // ends with that, or with ErrShutdown before
	leave    context.CancelCauseFunc
	end      func() // of connections, at the end of Close; nil: they stay the caller's

	identity string        // 'host:pid:id', the head of every owner string
	id       string        // 96 random bits
	seq      atomic.Uint64 // the rest of owner strings, and ids of holds
	random   atomic.Uint64 // the state of jitter
	released atomic.Int64  // beginnings and ends of ReleaseOwner
}

// New returns a Client over a rueidis client that stays the caller's: Close does not close it. It
// sends no command; a library that is missing on the server is reported by the first call.
//
// Every setting of rueidis works, and these are what Open would set: PipelineMultiplex -1, or else a late
// call can overtake the one that undoes it; AlwaysPipelining, or else a call can fail because its
// connection ended before it; no ConnLifetime, which would repeat commands that must not be; no
// SendToReplicas for SSUBSCRIBE, or else waiting means polling; ClusterOption.ShardsRefreshInterval, or
// else a primary that fell silent is left late; Timeout and KeepAlive of Sentinel.Dialer, or else a
// sentinel that fell silent is listened to for ever; ConnWriteTimeout, or else it is ten times
// Dialer.KeepAlive. A failover that no sentinel told of is heard of with Sentinel.TopologyRefreshInterval,
// but then rueidis v1.0.78 dials sentinels without a pause while there is no primary. Without Open there is
// no client-side caching.
//
// Errors: ErrArgument for a bad Config.
func New(redis rueidis.Client, cfg Config) (*Client, error) {
	if redis == nil {
		return nil, fmt.Errorf("holdfast: new: %w: redis must not be nil", ErrArgument)
	}
	c, err := build(cfg, false)
	if err != nil {
		return nil, fmt.Errorf("holdfast: new: %w", err)
	}
	c.connected(redis, nil, func() {})
	return c, nil
}

// Assemble is for package quorum, which makes the Backend of several servers. Calls that somebody waits for end
// with closing; end ends the rest, and blocks until that is done.
func Assemble(cfg Config, backend func(closing context.Context) fcall.Backend, end func()) (*Client, error) {
	c, err := build(cfg, true)
	if err != nil {
		return nil, err
	}
	c.backend, c.end = backend(c.closing), end
	c.start()
	return c, nil
}

// build makes the parts of a Client that know no server.
func build(cfg Config, voting bool) (*Client, error) {
	set, err := cfg.complete(voting)
	if err != nil {
		return nil, err
	}
	c := &Client{settings: set, cache: tracking.New()}
	c.events.log, c.events.observer = set.Logger, set.Observer
	c.identify()
	c.closing, c.stop = context.WithCancelCause(context.Background())
	c.leaving, c.leave = context.WithCancelCause(c.closing)
	c.inflight.idle, c.inflight.empty = context.WithCancel(context.Background())
	c.releases.idle, c.releases.empty = context.WithCancel(context.Background())
	c.values = values{known: map[string]*value{}, asked: map[string]*value{}}
	return c, nil
}

// connected begins to use one deployment. ended is that of fcall.Config. demoted is called when its server
// turns out to be a replica.
func (c *Client) connected(redis rueidis.Client, ended *atomic.Uint32, demoted func()) {
	c.redis, c.lost, c.cache.Slotted = redis, ended, redis.Mode() == rueidis.ClientModeCluster
	c.backend = replicas.New(fcall.New(fcall.Config{Redis: redis, AutoLoad: c.settings.AutoLoad, Closing: c.closing,
		Heard: c.heard, Changed: c.cache.Changed, Untracked: c.untracked, Demoted: demoted, Ended: ended}))
	c.inbox = inbox.New(inbox.Config{Redis: redis, Slotted: c.cache.Slotted, Prefix: c.settings.Prefix, ID: c.id,
		Unclaimed: c.unclaimed, Refused: c.events.unsubscribed})
	c.start()
}

// start makes the parts that need calls.
func (c *Client) start() {
	c.keeper = keeper.New(keeper.Config{Backend: c.backend, Cache: c.cache, Closed: ErrClosed,
		OnEnded: c.events.ended, OnGone: func(h *holding.Holding) { c.queues.Lost(h) },
		OnRenewed: c.events.renewed, OnUnanswered: c.events.unanswered})
	c.events.failing = c.keeper.Failing
	c.queues = queue.New(queue.Config{Backend: c.backend, Keeper: c.keeper, Inbox: c.inbox, Owner: c.owner,
		HoldID: c.holdID, Jitter: c.jitter, Closing: c.leaving, LostError: newLostError,
		Answered: c.events.answered, Unheard: c.events.unheard})
}

// Redis returns the rueidis client, for commands of the caller's own; nil if there are several. Do
// not close one that Open made. From here on calls for locks cost a goroutine each, because other
// commands may fill its connections. For subscriptions, large values and writes to the keys of locks take
// another client: a handler that is slow delays the answers to renewals, a connection that has subscribed may
// not be sent more than client-output-buffer-limit pubsub at a time (32 MB by default), and a change by this
// client is no news to it.
func (c *Client) Redis() rueidis.Client {
	if c.lost != nil {
		c.lost.Store(fcall.Shared)
	}
	return c.redis
}

// heard notes that the server has answered.
func (c *Client) heard() {
	c.cache.Heard()
	c.events.answered()
}

// unclaimed undoes a grant to an owner of this client that nobody waits with any more: after a
// failover the new primary can have it in its line still. It names the token, so that nothing newer
// is undone. Where the key was too long for the message, the provisional lease ends it. A message that is
// older than the lock's release changes nothing: that release keeps the minimum. The inbox calls it, so it
// waits for nothing.
func (c *Client) unclaimed(owner string, g inbox.Grant) {
	locks := g.Key != "" && (c.settings.NoPrefix || strings.HasPrefix(g.Key, c.settings.Prefix))
	if locks && strings.HasPrefix(owner, c.identity+":") && !c.keeper.Returns(g.Key, owner) {
		c.keeper.Undo(&keeper.Undo{Key: g.Key, Owner: owner, Token: g.Fence, Until: time.Now().Add(2 * lease.Handover)})
	}
}

// key is the Redis key of a lock.
func (c *Client) key(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%w: the lock's name must not be empty", ErrArgument)
	}
	if c.settings.NoPrefix {
		return name, nil
	}
	return c.settings.Prefix + name, nil
}

// jitter is a random part of d, so that clients do not act in step.
func (c *Client) jitter(d time.Duration) time.Duration {
	// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators)
	x := c.random.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return time.Duration((x ^ x>>31) % uint64(d))
}

// bytes of the host's name; of a longer one the end, which tells the pods of a deployment apart
const maxHost = 63

// identify names this client among all: who it is for people, and 96 random bits.
func (c *Client) identify() {
	host, _ := os.Hostname() // "" after an error
	host = strings.Map(func(r rune) rune {
		if r <= ' ' || r == ':' || r > '~' {
			return '-'
		}
		return r
	}, cmp.Or(host, "unknown"))
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

// holdID names a hold: unlike any other of its owner, also of other processes.
func (c *Client) holdID() string { return c.id + "." + strconv.FormatUint(c.seq.Add(1), 36) }
