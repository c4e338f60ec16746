// SPDX-License-Identifier: Apache-2.0

// Package simulation runs schedules of faults over the unchanged client and the unchanged library,
// in virtual time. A schedule is made of a seed: a deployment (a single server, a Cluster, or
// a quorum of independent servers), processes with goroutines that take locks in every way that the
// client has, and faults of servers, networks and processes. An observer sees both sides, and checks
// at every step what must always hold:
//
//  1. Two Locks that exclude each other never both have a live context.
//  2. A context ends before the server's lease can. Remaining is 0 from then on.
//  3. The tokens of one lock grow with every holder.
//  4. A resource that refuses lower tokens never loses an update.
//  5. A lock that is free, or has room for the first in line, is with a live waiter within 50 ms, once the faults are over.
//  6. Every call returns within its context and a moment, Close within a second, and nothing is left after it.
//  7. Every error is of exactly one kind, and an outage is never ErrBusy.
//  8. No key is without a TTL, and no lease is kept by a process that does not want it.
//  9. A lock with a minimum, or its slot, is nobody else's before that is over.
//  10. Nobody is served before who is before it in line.
//  11. A value was made for its name, with success, and no longer ago than its interval, or than it took and two
//     seconds. Nobody makes another one before that. Who waits for it has it when it is asked for next.
//
// Not covered: a process of a client that is paused (virtual time stands still for all), Sentinel (rueidis'
// client for it holds a mutex while it waits for the network, and then virtual time stands still), hostile
// writers of keys, ACLs, RESP2, the cost of calls, and clients made with New over another rueidis client.
// What is known not to hold is in known.go, each with a bound.
//
// On a quorum the server's side is a vote of each server, and a majority of them what a single
// server's lease is elsewhere. A lock that is free is with a live waiter within 3 s there, once the
// faults and the guard are over.
//
// Brief schedules have few actors and faults, over all deployments and levels; see brief.go.
//
// What the guarantees' table admits integration/oracle decides from the faults that were injected, for
// one owner of one lock, and it is counted.
package simulation
