// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// A result is what came of a sale.
type result struct {
	plan plan
	took time.Duration

	sold    int  // orders in the shop's books
	ordered bool // their tokens only grew

	heard, turnedAway int // buyers, as the processes told

	struck   bool      // a process was killed or paused
	held     bool      // the server said after that that it had the lock
	fence    int64     // its token
	leaseEnd time.Time // when its lease ended, if nobody renewed it
	since    int       // how many had the lock after it
	next     event     // the first of them
	stale    bool      // its late write was refused
}

// errClaim is the error of a demo whose claims are not all true.
var errClaim = errors.New("not all of it is true")

const (
	// A lease that the client counts in this process and the server in its own whole milliseconds.
	rounding = 2 * time.Millisecond
	// What is promised is less; this machine may be busy with other things.
	soon = 250 * time.Millisecond
)

func (r result) oversold() int { return max(0, r.sold-stock) }

// wait is how long after the end of the victim's lease the next holder had the
// lock.
func (r result) wait() time.Duration { return r.next.At.Sub(r.leaseEnd) }

// table prints one line for each sale.
func table(results []result) {
	const row = "%-24s  %6v  %6v  %6v  %8v  %19s  %12s  %6s"
	say("")
	say(row, "sale", "stock", "buyers", "sold", "oversold", "next holder", "stale writes", "time")
	for _, r := range results {
		next, stale := "-", "-"
		if r.next.Fence != 0 {
			next = fmt.Sprintf("lease end %+.1f ms", milliseconds(r.wait()))
		}
		if r.stale {
			stale = "refused"
		} else if r.plan.incident == syscall.SIGSTOP {
			stale = "NOT REFUSED"
		}
		say(row, r.plan.name, stock, buyers, r.sold, r.oversold(), next, stale,
			fmt.Sprintf("%.1f s", r.took.Seconds()))
	}
	say("")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// claims prints what the demo claims, with whether it is so, and returns
// whether all of it is.
func claims(results []result) bool {
	all := true
	for _, r := range results {
		for _, c := range r.claims() {
			word := "true "
			if !c.holds {
				word, all = "FALSE", false
			}
			say("%s  %s: %s", word, r.plan.name, c.text)
		}
	}
	return all
}

// A claim is something that the demo says, and whether it is so.
type claim struct {
	text  string
	holds bool
}

func (r result) claims() []claim {
	if !r.plan.locked {
		return []claim{{fmt.Sprintf("oversold by %d", r.sold-stock), r.sold > stock}}
	}
	list := []claim{
		{fmt.Sprintf("%d of %d sold, none too many", r.sold, stock), r.sold == stock},
		{"every order has a higher token than the one before", r.ordered},
	}
	switch r.plan.incident {
	case syscall.SIGKILL:
		list = append(list, claim{"the process held the lock when SIGKILL ended it", r.held})
	case syscall.SIGSTOP:
		list = append(list, claim{"the process held the lock when SIGSTOP stopped it", r.held},
			claim{"what it wrote when it came back was refused by its token", r.stale})
	}
	if r.plan.incident != 0 {
		wait, text := r.wait(), "the next holder had the lock after the lease's end"
		if r.next.Fence != 0 {
			text = fmt.Sprintf("the next holder had the lock %.1f ms after the lease's end, not before and within %d ms",
				milliseconds(wait), soon.Milliseconds())
		}
		list = append(list,
			claim{text, r.next.Fence != 0 && wait > -rounding && wait < soon},
			claim{fmt.Sprintf("the sale went on: %d had the lock after that", r.since), r.since > 0})
	}
	return list
}
