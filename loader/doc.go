// Package loader brings the Holdfast library onto the servers at deploy time: it loads, verifies, upgrades, rolls back and
// unloads it on every primary of a deployment, be it a single server, a primary with replicas, Sentinel or a Cluster. The
// command loader/cmd/holdfast is this package with flags.
//
// FUNCTION LOAD reaches the node that it is sent to, and that node's replicas by replication. So the loader goes to each
// primary itself, compares what is there with what it brings, writes only where they differ, and looks at every node
// afterwards, replicas too. Running it again changes nothing.
//
// It never takes what is not Holdfast's: a newer library, another library under our name, or another library that registers
// a function of ours makes it refuse, on all nodes, before anything was written, unless Options.Force says otherwise.
// FUNCTION FLUSH is never sent.
//
// The user needs +role +function|list +function|load, in a cluster +cluster|nodes too, and +function|delete for Unload and
// for Options.Force over another's library; no keys and no channels. (A rueidis client itself needs +ping, +cluster|slots or
// +cluster|shards in a cluster, and +client|tracking unless it was built with DisableCache.)
package loader
