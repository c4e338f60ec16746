// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

const (
	exporterListen = "127.0.0.1:9471"
	exporterEvery  = 15 * time.Second
	exporterGroups = 50
)

func exporterCommand(a *app) *cobra.Command {
	e := &exporter{groups: map[string]*group{}}
	e.filter.Limit = 1           // they are counted, and none is listed
	e.filter.Order = locks.ByAge // of several holders too
	e.each, e.render, e.kind = e.count, e.text, "text/plain; version=0.0.4; charset=utf-8"
	cmd := &cobra.Command{
		Use:     "exporter",
		GroupID: groupLocks,
		Short:   "Serve what watch sees as metrics of Prometheus, at /metrics",
		Long: `Exporter looks at all locks every 15 seconds, as watch does, and serves what it saw last as metrics of Prometheus. A
scrape makes no look. Names of locks are in no metric: the label "lock" has what stands before the first colon of a
name ("order" of "order:42"). Run one for a deployment: it sees the locks of all clients, and so does a second one.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast exporter --addr redis-1:6379 --listen :9471
  curl -s http://127.0.0.1:9471/metrics | grep oldest`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := listens(e.listen); err != nil {
				return err
			}
			if e.most < 0 {
				return usageError{errors.New("--groups must not be negative")}
			}
			mux := http.NewServeMux()
			mux.Handle("GET /metrics", &e.server)
			return a.serve(cmd.Context(), &e.server, mux)
		},
	}
	flags := cmd.Flags()
	e.where.bind(flags)
	flags.StringVar(&e.listen, "listen", exporterListen, "`address` to serve at")
	flags.DurationVar(&e.every, "every", exporterEvery, "the `pause` between two looks, which is longer if looks are")
	flags.IntVar(&e.most, "groups", exporterGroups, "at most that `many` values of the label lock; the locks of others are \"(other)\"")
	return cmd
}

// exporter counts the locks of a look.
type exporter struct {
	server
	most      int
	groups    map[string]*group // those that were seen once stay, so that their series do
	handOvers int
}

type group struct {
	held, waiting int
	oldest        time.Duration
}

func (e *exporter) count(l locks.Lock) {
	name, _, found := strings.Cut(strings.ToValidUTF8(l.Name, "?"), ":")
	if !found {
		name = "(none)"
	}
	g := e.groups[name]
	if g == nil && len(e.groups) >= e.most {
		name = "(other)"
		g = e.groups[name]
	}
	if g == nil {
		g = &group{}
		e.groups[name] = g
	}
	g.waiting += l.Waiters
	if l.Held {
		g.held++
		g.oldest = max(g.oldest, l.HeldFor())
	}
}

// text is the exposition format. What a look did not see whole is left out: a part would look like
// fewer locks.
func (e *exporter) text(series *locks.Series, look locks.Look) []byte {
	var out bytes.Buffer
	family := func(name, kind, help string) {
		fmt.Fprintf(&out, "# HELP holdfast_server_%s %s\n# TYPE holdfast_server_%[1]s %[3]s\n", name, help, kind)
	}
	sample := func(name, label, value string, number float64) {
		if label != "" {
			name += fmt.Sprintf(`{%s="%s"}`, label, labelValue.Replace(value))
		}
		fmt.Fprintf(&out, "holdfast_server_%s %v\n", name, number)
	}
	complete := 0.0
	if len(look.Errors) == 0 {
		complete = 1
		for _, gauge := range []struct {
			name, help string
			value      func(*group) float64
		}{
			{"held", "locks that are held", func(g *group) float64 { return float64(g.held) }},
			{"waiting", "places in line for them", func(g *group) float64 { return float64(g.waiting) }},
			{"oldest_hold_seconds", "how long the one that is held longest is held", func(g *group) float64 { return g.oldest.Seconds() }},
		} {
			family(gauge.name, "gauge", gauge.help)
			for _, name := range slices.Sorted(maps.Keys(e.groups)) {
				sample(gauge.name, "lock", name, gauge.value(e.groups[name]))
			}
		}
	}
	for _, g := range e.groups {
		*g = group{}
	}
	e.handOvers += look.HandOvers
	family("hand_overs_total", "counter", "locks whose holder was another one than at the look before, at least so many")
	sample("hand_overs_total", "", "", float64(e.handOvers))
	family("lost_total", "counter", "locks that were broken, or whose lease ran out, at least so many")
	for _, cause := range locks.Causes {
		sample("lost_total", "cause", string(cause), float64(series.Lost[cause].Count))
	}
	family("last_loss_timestamp_seconds", "gauge", "when the last one was seen")
	for _, cause := range locks.Causes {
		if lost := series.Lost[cause]; lost.Count > 0 {
			sample("last_loss_timestamp_seconds", "cause", string(cause), float64(lost.Last.Unix()))
		}
	}
	family("look_complete", "gauge", "1 if the last look saw all locks; if 0, what it should have counted is missing here")
	sample("look_complete", "", "", complete)
	family("look_timestamp_seconds", "gauge", "when the last look began")
	sample("look_timestamp_seconds", "", "", float64(look.At.Unix()))
	return out.Bytes()
}

var labelValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
