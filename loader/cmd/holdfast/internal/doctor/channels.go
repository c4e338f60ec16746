// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
)

// tracking turns it on and off again, on a connection of its own.
func (n *node) tracking(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.opt.Timeout)
	defer cancel()
	err := n.redis.Dedicated(func(c rueidis.DedicatedClient) error {
		if err := c.Do(ctx, c.B().Arbitrary("CLIENT", "TRACKING", "ON", "OPTOUT", "NOLOOP").Build()).Error(); err != nil {
			return err
		}
		return c.Do(ctx, c.B().Arbitrary("CLIENT", "TRACKING", "OFF").Build()).Error()
	})
	if reply := (*rueidis.RedisError)(nil); err != nil && !errors.As(err, &reply) {
		n.sees("CLIENT TRACKING", err) // it refuses nothing: it does not answer
	} else if err != nil {
		n.find("tracking-refused", rights.SetUser(n.opt.User, "+client|tracking", "+client|caching")+"; "+
			"a proxy in between must speak RESP3", "CLIENT TRACKING: %v", err)
	}
}

// messages sends itself one, as a hand-off is sent. Where a primary does not answer, which is an error
// already, it tells nothing that it is not heard.
func (e *examination) messages(ctx context.Context) {
	for i := range e.deployments {
		d := &e.deployments[i]
		channel := e.opt.Prefix + "holdfast-doctor-" + rand.Text()
		err := e.message(ctx, d.Client, channel)
		reply := (*rueidis.RedisError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &reply):
			e.find("messages-refused", "", rights.SetUser(e.opt.User, "&"+e.opt.Prefix+"*", "+ssubscribe", "+spublish", "+pubsub|shardnumsub"),
				"a message to a shard channel did not come back: %v", err)
		case e.silent(d):
			e.skip("messages from waiter to waiter")
		default:
			e.find("messages-refused", "", "let what is between here and the server (a proxy, a firewall) pass SSUBSCRIBE and SPUBLISH",
				"a message to a shard channel did not come back: %v", err)
		}
	}
}

// silent reports whether a primary of the deployment does not answer.
func (e *examination) silent(d *Deployment) bool {
	return d.silent || slices.ContainsFunc(e.nodes, func(n *node) bool {
		return n.of == d && n.role == cluster.Primary && n.gone != nil
	})
}

func (e *examination) message(ctx context.Context, redis rueidis.Client, channel string) error {
	ctx, cancel := context.WithTimeout(ctx, e.opt.Timeout)
	defer cancel()
	ready := make(chan struct{})
	sent := make(chan error, 1)
	go func() {
		select {
		case <-ready:
			err := redis.Do(ctx, redis.B().Spublish().Channel(channel).Message("here").Build()).Error()
			if err != nil {
				cancel()
			}
			sent <- err
		case <-ctx.Done():
			sent <- nil
		}
	}()
	came, subscribed := false, sync.OnceFunc(func() { close(ready) }) // a connection that breaks is subscribed again
	listen := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "ssubscribe" {
			subscribed()
		}
	})
	err := redis.Receive(listen, redis.B().Ssubscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) {
		came = true
		cancel()
	})
	cancel()
	refused := <-sent
	switch {
	case came:
		return nil
	case refused != nil:
		return refused
	}
	return err
}
