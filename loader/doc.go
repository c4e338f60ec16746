// SPDX-License-Identifier: Apache-2.0

// Package loader brings the Holdfast library onto the servers at deploy time: it loads, verifies,
// upgrades, rolls back and unloads it on every primary of a deployment, be it a single server, a
// primary with replicas, Sentinel or a Cluster. The command loader/cmd/holdfast is this package
// with flags.
//
// FUNCTION LOAD reaches the node that it is sent to, and that node's replicas by replication. So
// the loader asks each primary. It writes only where the library differs, and afterwards it looks
// at every node, replicas too. Running it again changes nothing.
//
// There are two libraries: the locks, functions.Source, and the writes with a fencing token,
// functions.FencedSource. Each call is about the one in Options.Source, and leaves the other alone.
//
// It overwrites only what is Holdfast's, not newer, and of the same contract: the major number of a
// version is that of the contract, and callers of one do not understand another. A newer library of the
// contract stays. If a node has one of another contract, another library under our name, or another library
// that registers a function of ours, the loader refuses before it has written to any node. Options.Force
// overrides both. FUNCTION FLUSH is never sent.
//
// The user needs +role +function|list +function|load, +multi +exec +fcall +time +info to carry the memory of
// guarded locks over, in a cluster +cluster|nodes too, and +function|delete for Unload and for Options.Force
// over another's library; no keys and no channels. The rueidis client needs +ping too, in a cluster
// +cluster|slots or +cluster|shards, and +client|tracking unless it was built with DisableCache.
package loader
