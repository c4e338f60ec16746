package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
	"github.com/redis/rueidis"
)

const (
	fewest, most = 3, 9 // servers of a quorum
	nextConnect  = 100 * time.Millisecond
	lastConnect  = 5 * time.Second
	asksIdentity = time.Second
)

// OpenQuorum is Open for locks on a majority of 3, 5, 7 or 9 independent servers: none is a replica
// of another, and a minority may be lost at any time. A lock outlives that without a pause. All
// clients give the same servers in the same order, and the same Guard. Code that uses a lock does not
// change.
//
// Each call goes to all servers, and an acquisition takes two round trips: the second one makes the
// token known to a majority, so that tokens grow from holder to holder. WithOwner and Replicas are
// ErrArgument, goroutines of one process do not pass a lock on among themselves, and there is no
// client-side caching. A server that comes back empty does not vote for Config.Guard, which is the
// Lease by default, counted from the first time that it is asked to take or renew a lock. So all may
// be restarted one after the other, twice Guard apart; but when all servers are new, nobody gets a
// lock for so long.
//
// Each lock has its line at one of the servers, chosen by its name. While that one is down, those who
// wait try all servers, about every Interval, and the order is lost.
//
// It connects as Open does, and returns when a majority answers, and the others have had a moment;
// they are connected to in the background, also later. A server may be a primary behind Sentinel,
// but not a Cluster. The library must be on each of them; with AutoLoad the client sees to that.
//
// Errors: ErrArgument for a bad Config, another number of servers, or two that are one;
// ErrUnreachable when no majority answers, ErrDenied when it refuses the credentials.
func OpenQuorum(options []rueidis.ClientOption, cfg Config) (*Client, error) {
	c, err := newQuorum(len(options), cfg)
	if err == nil {
		err = distinct(options)
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	for range options {
		c.deploy(newWires())
	}
	c.vote()
	answers := make(chan error, len(options))
	for i, d := range c.deployments {
		option := options[i]
		option.DisableCache = true
		option, _ = adapt(option, d.wires, nil)
		d.connecting.Go(func() { c.connect(d, option, answers) })
	}
	if err := c.elect(answers, len(options)); err != nil {
		c.Close()
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	return c, nil
}

// NewQuorum is OpenQuorum over rueidis clients that stay the caller's, as New is Open. They are of
// independent servers: it sends no command, and cannot look.
//
// Errors: ErrArgument for a bad Config, another number of servers, or a Cluster.
func NewQuorum(redis []rueidis.Client, cfg Config) (*Client, error) {
	c, err := newQuorum(len(redis), cfg)
	if err != nil {
		return nil, fmt.Errorf("holdfast: new: %w", err)
	}
	for i, r := range redis {
		if r == nil || slices.Contains(redis[:i], r) {
			return nil, fmt.Errorf("holdfast: new: %w: redis[%d] is nil or one of those before", ErrArgument, i)
		}
		if r.Mode() == rueidis.ClientModeCluster {
			return nil, fmt.Errorf("holdfast: new: %w: redis[%d] %w", ErrArgument, i, errCluster)
		}
		c.deploy(nil).connected(r)
	}
	c.vote()
	return c, nil
}

var errConnecting = errors.New("no connection yet")

var errCluster = errors.New("is a Cluster, which cannot be a member of a quorum")

func newQuorum(servers int, cfg Config) (*Client, error) {
	if servers < fewest || servers > most || servers%2 == 0 {
		return nil, fmt.Errorf("%w: a quorum has %d to %d servers, an odd number, not %d", ErrArgument, fewest, most, servers)
	}
	cfg, set, err := cfg.complete(true)
	if err != nil {
		return nil, err
	}
	return build(cfg, set), nil
}

// vote begins to use all deployments.
func (c *Client) vote() {
	members := make([]quorum.Member, len(c.deployments))
	for i, d := range c.deployments {
		members[i] = d.member
	}
	c.quorum = quorum.New(members, c.closing, c.late)
	c.calls = several{c.quorum}
	c.start()
}

// late hears of an owner that may have got a vote after it had given up.
func (c *Client) late(key, owner string) {
	c.giveUp(&held{core: &c.core, key: key, owner: owner, terms: &c.settings.terms}, c.settings.terms.longest+lineTime)
}

// elect waits until a majority has answered, and a moment for the others.
func (c *Client) elect(answers <-chan error, servers int) error {
	need, connected := servers/2+1, 0
	var failed error
	var enough <-chan time.Time
	for range servers {
		select {
		case err := <-answers:
			if errors.Is(err, ErrArgument) {
				return err
			}
			if err == nil {
				connected++
			} else if failed == nil {
				failed = err
			}
		case <-enough:
			return nil
		}
		if connected == need {
			enough = time.After(moment)
		}
	}
	if connected < need {
		return fmt.Errorf("%d of %d servers answered, and %d must: %w", connected, servers, need, failed)
	}
	return nil
}

// distinct looks for servers that are given twice.
func distinct(options []rueidis.ClientOption) error {
	seen := map[string]int{}
	for i, o := range options {
		if len(o.InitAddress) == 0 {
			return fmt.Errorf("%w: server %d has no InitAddress", ErrArgument, i)
		}
		for _, addr := range o.InitAddress {
			name := o.Sentinel.MasterSet + "@" + addr
			if first, twice := seen[name]; twice && first != i {
				return fmt.Errorf("%w: the servers %d and %d have one address, %s", ErrArgument, first, i, addr)
			}
			seen[name] = i
		}
	}
	return nil
}

// connect connects, again and again, and reports the first outcome. The log has that, and what is wrong
// with the options where that shows later.
func (c *Client) connect(d *deployment, option rueidis.ClientOption, first chan<- error) {
	wrong := false
	for pause := nextConnect; ; pause = min(2*pause, lastConnect) {
		err := c.once(d, option)
		if c.closing.Err() == nil && err != nil && (first != nil || errors.Is(err, ErrArgument) && !wrong) {
			c.journal.absent(option.InitAddress, err)
		}
		wrong = errors.Is(err, ErrArgument)
		if first != nil {
			first <- err
			first = nil
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-c.closing.Done():
			return
		}
	}
}

// once connects to a server that no other deployment leads to.
func (c *Client) once(d *deployment, option rueidis.ClientOption) error {
	redis, err := rueidis.NewClient(option)
	if err != nil {
		d.failed.Store(&err)
		return fcall.Classify(context.Background(), err)
	}
	err = c.independent(redis)
	if err != nil || c.closing.Err() != nil {
		if err != nil {
			d.failed.Store(&err)
		}
		redis.Close()
		return err
	}
	d.connected(redis)
	return nil
}

// independent reports an error if a server is a Cluster, or shares its data with one that has been
// connected to, or does not say: it could have two votes.
func (c *Client) independent(redis rueidis.Client) error {
	if redis.Mode() == rueidis.ClientModeCluster {
		return fmt.Errorf("%w: it %w", ErrArgument, errCluster)
	}
	ctx, cancel := context.WithTimeout(c.closing, asksIdentity)
	defer cancel()
	info, err := redis.Do(ctx, redis.B().Info().Section("replication", "cluster").Build()).ToString()
	if err != nil {
		return fcall.Classify(context.Background(), err)
	}
	if strings.Contains(info, "\ncluster_enabled:1") {
		return fmt.Errorf("%w: it %w", ErrArgument, errCluster)
	}
	_, rest, _ := strings.Cut(info, "\nmaster_replid:")
	id, _, _ := strings.Cut(rest, "\r")
	if _, twice := c.histories.LoadOrStore(id, true); twice && id != "" {
		return fmt.Errorf("%w: two of the servers are one, or one is a replica of the other (replication id %s)", ErrArgument, id)
	}
	return nil
}

// member is who makes calls, or why nobody can yet.
func (d *deployment) member() (*fcall.Caller, error) {
	if c := d.calls(); c != nil {
		return c, nil
	}
	if err := d.failed.Load(); err != nil {
		return nil, fcall.NotConnected(*err)
	}
	return nil, fcall.NotConnected(errConnecting)
}
