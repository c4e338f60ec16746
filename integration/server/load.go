// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// replicatedWithin bounds the wait for the replicas of one primary.
const replicatedWithin = 10 * time.Second

// Load puts the function library on all primaries of the moment, in place of
// what stands under its name, and blocks until their replicas have it. A
// failure ends the test.
func (d *Deployment) Load(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	if err := d.LoadFunctions(ctx); err != nil {
		tb.Fatal(err)
	}
}

// LoadFunctions is Load outside a test.
func (d *Deployment) LoadFunctions(ctx context.Context) error {
	primaries, err := d.Primaries(ctx)
	if err != nil {
		return err
	}
	return Together(primaries, func(n *Node) error { return n.load(ctx) })
}

// Primaries asks every data node that runs for its role and returns the
// primaries of the moment.
func (d *Deployment) Primaries(ctx context.Context) ([]*Node, error) {
	var primaries []*Node
	for _, n := range d.nodes {
		if n.proc != nil && ended(n.proc) {
			continue
		}
		primary, err := n.IsPrimary(ctx)
		if err != nil {
			return nil, err
		}
		if primary {
			primaries = append(primaries, n)
		}
	}
	if len(primaries) == 0 {
		return nil, errors.New("server: no primary runs")
	}
	return primaries, nil
}

// load loads the library on one primary. WAIT counts the replicas that have
// all writes of its own connection, so both are sent on one.
func (n *Node) load(ctx context.Context) error {
	replicas, err := strconv.ParseInt(n.Info(ctx, "replication", "connected_slaves"), 10, 64)
	if err != nil {
		return fmt.Errorf("server: replicas of %s: %w", n.Addr, err)
	}
	replies, err := n.doAll(ctx,
		[]string{"FUNCTION", "LOAD", "REPLACE", functions.Source},
		[]string{"WAIT", strconv.FormatInt(replicas, 10), strconv.FormatInt(replicatedWithin.Milliseconds(), 10)})
	if err != nil {
		return fmt.Errorf("server: load functions on %s: %w", n.Addr, err)
	}
	if err := replies[0].Error(); err != nil {
		return fmt.Errorf("server: load functions on %s: %w", n.Addr, err)
	}
	have, err := replies[1].ToInt64()
	if err == nil && have < replicas {
		err = fmt.Errorf("after %s", replicatedWithin)
	}
	if err != nil {
		return fmt.Errorf("server: %d of %d replicas of %s have the functions: %w", have, replicas, n.Addr, err)
	}
	return nil
}
