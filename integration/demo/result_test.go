// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// good is a result of which all claims are true.
func good(p plan) result {
	r := result{plan: p, sold: stock, ordered: true}
	if !p.locked {
		r.sold = stock + 50
	}
	if p.incident != 0 {
		r.held, r.since, r.stale = true, 50, p.incident == syscall.SIGSTOP
		r.leaseEnd = time.Now()
		r.next = event{Fence: 8, At: r.leaseEnd.Add(3 * time.Millisecond)}
	}
	return r
}

func claimed(results ...result) (bool, string) {
	var out bytes.Buffer
	ok := (display{&out}).claims(results)
	return ok, out.String()
}

// The demo must be able to fail: each of these makes exactly one claim false.
func TestFalseClaims(t *testing.T) {
	for _, p := range sales {
		ok, text := claimed(good(p))
		require.True(t, ok, text)
	}
	noLock, plain, kill, pause := sales[0], sales[1], sales[2], sales[3]
	for name, test := range map[string]struct {
		plan  plan
		spoil func(*result)
	}{
		"not oversold":            {noLock, func(r *result) { r.sold = stock }},
		"one too many":            {plain, func(r *result) { r.sold++ }},
		"one too few":             {kill, func(r *result) { r.sold-- }},
		"tokens out of order":     {pause, func(r *result) { r.ordered = false }},
		"killed without the lock": {kill, func(r *result) { r.held = false }},
		"paused without the lock": {pause, func(r *result) { r.held = false }},
		"stale write accepted":    {pause, func(r *result) { r.stale = false }},
		"next holder too early":   {kill, func(r *result) { r.next.At = r.leaseEnd.Add(-5 * time.Millisecond) }},
		"next holder too late":    {kill, func(r *result) { r.next.At = r.leaseEnd.Add(soon) }},
		"no next holder":          {pause, func(r *result) { r.next = event{At: r.next.At} }},
		"the sale stood still":    {kill, func(r *result) { r.since = 0 }},
	} {
		r := good(test.plan)
		test.spoil(&r)
		ok, text := claimed(good(noLock), r)
		require.False(t, ok, "%s\n%s", name, text)
		require.Equal(t, 1, bytes.Count([]byte(text), []byte("FALSE")), "%s\n%s", name, text)
	}
}
