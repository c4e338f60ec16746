// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/sentinels"
)

// before is by how many milliseconds a primary must stop earlier than the sentinels find it down:
// see "Guarded locks" of the contract.
const before = 2000

// ask returns what the first sentinel that answers knows of a deployment's primary; nothing if there is none.
func (e *examination) ask(ctx context.Context, d *Deployment) sentinels.Known {
	if d.Master == "" {
		return sentinels.Known{}
	}
	ctx, cancel := context.WithTimeout(ctx, e.opt.Timeout)
	defer cancel()
	return sentinels.Ask(ctx, d.DialSentinel, d.Sentinels, d.Master, "") // why not is found in sentinel
}

// sentinels looks at those that were named, and at those that they know: all of them must agree.
func (e *examination) sentinels(ctx context.Context) {
	for i := range e.deployments {
		d := &e.deployments[i]
		all := slices.Clone(d.Sentinels)
		seen := map[string]bool{} // by run id
		for at := 0; at < len(all); at++ {
			for _, other := range e.sentinel(ctx, d, all[at], seen) {
				if !slices.Contains(all, other) {
					all = append(all, other)
				}
			}
		}
	}
}

// sentinel looks at one, and returns the others that it knows.
func (e *examination) sentinel(ctx context.Context, d *Deployment, addr string, seen map[string]bool) (others []string) {
	ctx, cancel := context.WithTimeout(ctx, e.opt.Timeout)
	defer cancel()
	unreachable := func(err error) {
		e.find("sentinel-unreachable", addr, "start it again, or take its address away", "%v", err)
	}
	redis, err := d.DialSentinel(ctx, addr)
	if err != nil {
		unreachable(err)
		return nil
	}
	defer redis.Close()
	if id, err := redis.Do(ctx, redis.B().Arbitrary("SENTINEL", "MYID").Build()).ToString(); err == nil {
		if seen[id] {
			return nil // by another address
		}
		seen[id] = true
	}
	if known, err := sentinels.From(ctx, redis, d.Master); err == nil {
		others = known.Others
	}
	ask := func(words ...string) rueidis.RedisResult {
		return redis.Do(ctx, redis.B().Arbitrary("SENTINEL").Args(words...).Build())
	}
	refused := func(command string, err error) {
		e.find("not-checked", addr, "give --sentinel-user a user who may use SENTINEL", "SENTINEL %s: %v", command, err)
	}
	err = ask("CKQUORUM", d.Master).Error()
	switch reply, replied := rueidis.IsRedisErr(err); {
	case replied && strings.HasPrefix(reply.Error(), "NOPERM"):
		refused("CKQUORUM", err)
	case replied:
		e.find("sentinel-quorum", addr, "start the sentinels again, or SENTINEL SET "+d.Master+" quorum N; "+
			"a majority must be up", "%v", err)
	case err != nil:
		unreachable(err)
		return others
	}
	about, err := ask("MASTER", d.Master).AsStrMap()
	if _, replied := rueidis.IsRedisErr(err); replied {
		refused("MASTER", err)
		return others
	} else if err != nil {
		unreachable(err)
		return others
	}
	down := number(about, "down-after-milliseconds")
	for _, n := range e.nodes {
		lag := number(n.set, "min-replicas-max-lag")
		on := number(n.set, "min-replicas-to-write") > 0 && lag > 0
		if n.of == d && n.role == cluster.Primary && on && lag*1000+before > down {
			longer := max(10_000, lag*1000+before)
			e.find("sentinel-lag", addr, fmt.Sprintf("SENTINEL SET %s down-after-milliseconds %d at every sentinel, "+
				"or a smaller min-replicas-max-lag at every server", d.Master, longer),
				"down-after-milliseconds is %d, and min-replicas-max-lag %d s: it must be 2 s shorter", down, lag)
		}
	}
	return others
}
