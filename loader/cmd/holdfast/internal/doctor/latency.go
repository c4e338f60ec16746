// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

const (
	spike     = 100 // milliseconds
	busyReply = 5000
)

func (n *node) latency(ctx context.Context) {
	if limit := number(n.set, "busy-reply-threshold"); limit == 0 || limit > busyReply {
		n.find("busy-reply", configSet("busy-reply-threshold", "5000"),
			"busy-reply-threshold (lua-time-limit) is %d ms", limit)
	}
	n.scripts(ctx)
	n.spikes(ctx)
}

// scripts looks for calls of functions and scripts in the slow log.
func (n *node) scripts(ctx context.Context) {
	entries, err := n.do(ctx, "SLOWLOG", "GET", "128").ToArray()
	if !n.sees("SLOWLOG GET", err) {
		return
	}
	theirs, own := slowest{}, slowest{}
	for _, entry := range entries {
		parts, err := entry.ToArray() // id, when, microseconds, the words
		if err != nil || len(parts) < 4 {
			continue
		}
		micros, _ := parts[2].AsInt64()
		words, _ := parts[3].AsStrSlice()
		took := time.Duration(micros) * time.Microsecond
		switch {
		case took < n.opt.SlowScript || len(words) < 2 || !script(words[0]):
		case ours(words):
			own.add(took, words)
		default:
			theirs.add(took, words)
		}
	}
	if theirs.count > 0 {
		n.find("slow-scripts", "shorten the script, run it elsewhere; then SLOWLOG RESET",
			"%d of the last calls in the slow log are scripts of %v and more, the longest %v: %s",
			theirs.count, n.opt.SlowScript, theirs.worst.Round(time.Millisecond), theirs.name)
	}
	if own.count > 0 {
		n.find("slow-functions", "see what the machine's processors, memory and disk are busy with, and LATENCY DOCTOR; then SLOWLOG RESET",
			"%d of the last calls in the slow log are of Holdfast's functions and took %v and more, the longest %v: %s",
			own.count, n.opt.SlowScript, own.worst.Round(time.Millisecond), own.name)
	}
}

// slowest counts calls, and knows the one that took longest.
type slowest struct {
	count int
	worst time.Duration
	name  string
}

func (s *slowest) add(took time.Duration, words []string) {
	s.count++
	if took > s.worst {
		s.worst, s.name = took, short(strings.ToUpper(words[0])+" "+words[1])
	}
}

// ours reports whether a call is one of a function of Holdfast's.
func ours(words []string) bool {
	all := append(functions.Names(), functions.FencedNames()...)
	is := func(name string) bool { return strings.EqualFold(name, words[1]) }
	return strings.HasPrefix(strings.ToLower(words[0]), "fcall") && slices.ContainsFunc(all, is)
}

func script(command string) bool {
	all := []string{"fcall", "fcall_ro", "eval", "eval_ro", "evalsha", "evalsha_ro"}
	return slices.Contains(all, strings.ToLower(command))
}

func short(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// spikes looks at what the server's latency monitor noted, if it is on.
func (n *node) spikes(ctx context.Context) {
	events, err := n.do(ctx, "LATENCY", "LATEST").ToArray()
	if !n.sees("LATENCY LATEST", err) {
		return
	}
	for _, event := range events {
		parts, err := event.ToArray() // name, when, latest, greatest
		if err != nil || len(parts) < 4 {
			continue
		}
		name, _ := parts[0].ToString()
		most, _ := parts[3].AsInt64()
		if most >= spike {
			n.find("latency-spikes", "LATENCY DOCTOR says more; then LATENCY RESET "+name,
				"the latency monitor noted %s of up to %d ms", name, most)
		}
	}
}
