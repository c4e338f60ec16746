// SPDX-License-Identifier: Apache-2.0

package doctor

import "slices"

// Kind is something that can be found. Its code never changes its meaning: scripts look for it.
type Kind struct {
	Code     string
	Severity Severity
	Why      string
}

// Kinds is the table of all that can be found. docs/doctor.md has a row for each.
var Kinds = []Kind{
	{"server-version", Danger, "the library needs Redis Functions, which came with 7.0"},
	{"engine-missing", Danger, "without Lua the server runs no library: FUNCTION LOAD fails"},
	{"command-missing", Danger, "the library or its clients call it: renamed or disabled, locks fail"},
	{"library-missing", Danger, "calls at this node fail; at a replica, from a failover on"},
	{"library-outdated", Danger, "a newer client can call what it lacks, and its defects are still there"},
	{"library-differs", Danger, "somebody changed the code: what is guaranteed may not hold"},
	{"library-foreign", Danger, "another's functions answer to the library's names"},
	{"library-newer", Note, "this command is older than the servers' library"},

	{"eviction", Danger, "every lock has a TTL, so a full server evicts locks, and grants them again"},
	{"memory-full", Danger, "a full server grants no locks and lets nobody join a line"},
	{"no-persistence", Danger, "after a restart locks are granted twice, but for guarded ones, and calls fail until the library is loaded"},
	{"rdb-only", Danger, "after a restart it grants locks that were taken since the last save, but for guarded ones"},
	{"appendfsync-no", Danger, "after a crash of its machine it grants locks of the last half minute again, but for guarded ones"},
	{"appendfsync-everysec", Note, "after a crash of its machine it can grant locks of the last seconds again"},
	{"persistence-failing", Danger, "a restart forgets what was not written, and writes may be refused (MISCONF)"},

	{"min-replicas", Danger, "a primary that was cut off and replaced goes on granting locks beside the new one"},
	{"min-replicas-cluster", Note, "a Cluster's primary that is cut off goes on for cluster-node-timeout, or some seconds more"},
	{"min-replicas-lag", Danger, "a min-replicas-max-lag of 0 switches min-replicas-to-write off"},
	{"min-replicas-unmet", Danger, "the primary refuses all writes (NOREPLICAS): nobody gets a lock"},
	{"min-replicas-differ", Danger, "once it is promoted, the replica goes on granting locks when it is cut off"},
	{"no-replica", Note, "if this primary is lost, nobody takes over"},
	{"replica-link", Danger, "the replica does not follow: if it is promoted, it grants locks that others hold"},
	{"replica-writable", Danger, "a client at the replica gets locks there that the primary does not know"},

	{"cluster-down", Danger, "the node refuses calls (CLUSTERDOWN)"},
	{"slots-uncovered", Danger, "locks of these slots cannot be taken or given back"},
	{"slots-moving", Danger, "if the old node fails over, Redis grants again what the new one has; a move does not end by itself"},
	{"node-down", Danger, "its locks end with their leases, or the next failover finds no replica"},
	{"full-coverage", Note, "one primary lost without a replica stops the locks of all slots"},
	{"replica-migration", Note, "a primary can get one replica more than Config.Replicas counts on"},
	{"sentinel-quorum", Danger, "if the primary is lost, the sentinels promote nobody"},
	{"sentinel-lag", Danger, "the old primary may still take writes when another one is promoted"},
	{"sentinel-unreachable", Danger, "one sentinel less that can agree to a failover, or lead clients to the primary"},

	{"clock-tokens", Danger, "after a failover fencing tokens can fall, and on a quorum votes do not count"},
	{"clock-leases", Danger, "leases end early, or late, by the difference when the other node takes over"},
	{"clock-here", Note, "times in this machine's logs differ from those of the servers; leases are not affected"},

	{"rights-missing", Danger, "an error in the middle of a function undoes nothing: grant all of it"},
	{"tracking-refused", Slow, "without client-side caching each try asks the server"},
	{"messages-refused", Slow, "waiters hear of no hand-off, and must ask again and again; if only SPUBLISH is missing, calls that must wait fail"},

	{"round-trip", Slow, "each acquire and each release takes a round trip, a hand-off two"},
	{"slow-scripts", Slow, "while a script runs, the server answers nobody"},
	{"slow-functions", Slow, "they should take less than a millisecond: something else delays the server and all calls"},
	{"latency-spikes", Slow, "while that lasted, the server answered nobody; a renewal can come too late"},
	{"busy-reply", Slow, "clients wait behind a script that hangs, and get no error"},

	{"foreign-keys", Danger, "a lock of that name can never be taken"},
	{"keys-without-ttl", Danger, "nobody gets the lock until somebody deletes the key"},
	{"plain-strings", Note, "others hold these locks by SET NX: they must release by comparing the value"},

	{"maxclients", Danger, "new clients are refused, and clients that reconnect"},
	{"idle-timeout", Slow, "idle connections are closed: the next call must connect again, or fails"},
	{"tcp-keepalive", Slow, "the server does not notice that a waiter's machine is gone, and offers it the lock"},

	{"node-unreachable", Danger, "nothing is known of it; what is promoted may lack the locks and the library"},
	{"not-checked", Note, "the user may not look at it, or the server does not tell"},
}

// Known reports whether there is a kind with this code.
func Known(code string) bool {
	return slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Code == code })
}

func kindOf(code string) Kind {
	for _, k := range Kinds {
		if k.Code == code {
			return k
		}
	}
	panic("doctor: no kind " + code)
}
