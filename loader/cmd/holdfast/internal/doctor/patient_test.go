// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
)

const (
	soon      = time.Minute
	pollEvery = 20 * time.Millisecond
)

var ctx = context.Background()

// patient is a deployment that is examined again and again.
type patient struct {
	t *testing.T
	d *server.Deployment
	doctor.Deployment
	opt doctor.Options
}

// healthy brings a deployment into the state in which nothing is found.
func healthy(t *testing.T, d *server.Deployment, more ...string) *patient {
	t.Helper()
	opt := d.ClientOption()
	opt.DisableCache = true
	p := patientOf(t, d, opt)
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(ctx, p.Client)
		return err == nil && len(nodes) == len(d.Nodes())
	}, soon, pollEvery)
	_, err := loader.Load(ctx, p.Client, loader.Options{Dial: p.Dial})
	require.NoError(t, err)
	p.set(append([]string{"appendonly", "yes", "appendfsync", "always"}, more...)...)
	for _, n := range d.Nodes() {
		p.do(n, "LATENCY", "RESET")
		p.do(n, "SLOWLOG", "RESET") // a busy machine makes scripts slow
	}
	p.recovers()
	return p
}

func patientOf(t *testing.T, d *server.Deployment, opt rueidis.ClientOption) *patient {
	t.Helper()
	opt.DisableCache, opt.PipelineMultiplex = true, -1
	client, err := rueidis.NewClient(opt)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	// The bounds are above what a busy machine does by itself.
	p := &patient{t: t, d: d, opt: doctor.Options{User: cmp.Or(opt.Username, "default"), Prefix: "lock:", SlowTrip: soon,
		SlowScript: 2 * time.Second, Timeout: 10 * time.Second}}
	p.Deployment = doctor.Deployment{Client: client, Dial: loader.Dialer(opt)}
	if d.SentinelMaster != "" {
		p.Sentinels, p.Master, p.DialSentinel = d.Addrs(), d.SentinelMaster, loader.Dialer(rueidis.ClientOption{})
	}
	return p
}

func (p *patient) do(n *server.Node, words ...string) rueidis.RedisMessage {
	p.t.Helper()
	reply, err := n.Do(ctx, words...)
	require.NoError(p.t, err, "%s", strings.Join(words, " "))
	return reply
}

// set changes settings of all nodes.
func (p *patient) set(pairs ...string) {
	p.t.Helper()
	for _, n := range p.d.Nodes() {
		p.do(n, append([]string{"CONFIG", "SET"}, pairs...)...)
	}
}

// setFor changes settings and returns what changes them back.
func (p *patient) setFor(pairs ...string) (back func()) {
	p.t.Helper()
	var old []string
	for i := 0; i < len(pairs); i += 2 {
		was, err := p.d.Nodes()[0].Do(ctx, "CONFIG", "GET", pairs[i])
		require.NoError(p.t, err)
		pair, err := was.AsStrSlice()
		require.NoError(p.t, err)
		old = append(old, pairs[i], pair[1])
	}
	p.set(pairs...)
	return func() { p.set(old...) }
}

// recovers waits until nothing is found but these codes.
func (p *patient) recovers(but ...string) (found map[string]doctor.Finding) {
	p.t.Helper()
	slices.Sort(but)
	for end := time.Now().Add(soon); ; {
		if found = p.examine(); slices.Equal(but, slices.Sorted(maps.Keys(found))) || time.Now().After(end) {
			return p.require(found, but)
		}
	}
}

// examine returns the findings by their codes.
func (p *patient) examine() map[string]doctor.Finding {
	p.t.Helper()
	report := doctor.Examine(ctx, []doctor.Deployment{p.Deployment}, p.opt)
	require.Empty(p.t, report.Errors)
	return byCode(report)
}

func byCode(report doctor.Report) map[string]doctor.Finding {
	found := map[string]doctor.Finding{}
	for _, f := range report.Findings {
		found[f.Code] = f
	}
	return found
}

// whats are the texts of the findings with this code.
func whats(report doctor.Report, code string) (texts []string) {
	for _, f := range report.Findings {
		if f.Code == code {
			texts = append(texts, f.What)
		}
	}
	return texts
}

// found requires that these codes are found, and nothing else.
func (p *patient) found(codes ...string) map[string]doctor.Finding {
	p.t.Helper()
	return p.require(p.examine(), codes)
}

func (p *patient) require(found map[string]doctor.Finding, codes []string) map[string]doctor.Finding {
	p.t.Helper()
	require.ElementsMatch(p.t, codes, slices.Collect(maps.Keys(found)), "%+v", found)
	for _, f := range found {
		require.NotEmpty(p.t, f.What)
		require.NotEmpty(p.t, f.Mend)
	}
	return found
}
