// SPDX-License-Identifier: Apache-2.0

// Command chaos runs schedules of random faults on real servers, and checks what the clients saw.
//
//	go run . -time 60s -seed 1 -out records
//
// A round is one deployment: a single server with or without persistence, Sentinel, Cluster, or five
// independent servers, as processes of this machine. Processes of clients want a few locks all the
// time: Go clients at the default level and at the level Replicas with all replicas. In rounds of the
// level Guard all of them ask for the same guard, and are at no other level. In about every other round
// they load the library where it is missing, if they come first.
// Meanwhile faults strike, several at once, chosen by generators that the round's seed starts: of
// the network between each client and each server (through proxies), of the network between servers,
// of the client processes, of the servers, and by the hands of operators. After the storm all faults
// are taken back, and everybody must get every lock again.
//
// The seed fixes what is chosen, not when it happens: the processes are real. So a seed makes a
// violation likely again, not certain. The record tells what happened.
//
// # Cuts between servers
//
// In rounds with replicas the servers reach each other, and sentinels the servers, through proxies too:
// one for each pair and each port (mesh.go). A proxy with an announced address would be announced to
// clients as well. So a library in front of the C library (integration/reroute) has each server connect
// to its proxies instead, and all addresses stay the real ones, which clients connect to. It needs a C
// compiler, and servers that are not linked statically; else there are no such faults, and it is said why.
//
// One server, mostly a primary, is cut off from all others, or only what it sends does not arrive, or
// what they send, or two servers are cut off from each other, for 0.3 to 8 s: others take over from
// a primary after two to five. Under Sentinel, clients can be on the side of the primary. Then what was
// held up arrives, or the connections end.
//
// Nothing that is sent arrives, but the servers' systems still open, acknowledge and close connections.
// A network without any packets would do that later.
//
// # The record
//
// Each line of a record is JSON: when it was written, in seconds since the round began, what it is
// ("round", "fault", "fault over", "fault role", "call", "hold", "violation"), and the data.
// Times in the data are nanoseconds of the machine's monotonic clock. A call without an End was never
// answered. Start, Enter, Last and End of a hold are when its call began, when it was first seen
// live, when last, and when it was over. A role is that of a server that was another one 0.3 s before.
// What a process printed as it ended badly is in process.stderr beside it.
//
// # What is checked
//
// Each process records its calls, those without an answer included, and each holder looks at its
// lock all the time. It was held, in the eyes of its context, from the first look that found it
// live to the last one. A pause between two looks does no harm to that: a lock that has ended is
// never live again. All times are of the one clock of the machine. From this history:
//
//  1. Two are never inside one lock, but where the guarantees' page admits it for a fault that was
//     under way. integration/oracle decides that, by what admits.go says of each fault.
//  2. Tokens grow with every holder, and no two have the same: so a resource that refuses older ones
//     loses no update. No fault here is an exception, because all servers share one clock.
//  3. Nothing hangs: each call returns within its time (hang.go). Never excepted.
//  4. Nothing is stuck: after the storm everybody gets every lock, and no lock stays free while
//     somebody waits for it (stuck.go). Never excepted.
//  5. No goroutine is left when a process has closed its clients. Never excepted.
//
// A round that fails keeps its history (name.jsonl) in the out folder. Tests put defects into the
// library and into callers, and each must be found.
//
// What is found depends on the faults. Where they admit a second holder all the time, little of
// rule 1 is left, so the rounds take turns: all faults, those that admit nothing at the level
// Replicas, those that admit nothing at all, and at the level Guard, those that admit nothing there
// and all faults. With a guard nobody gets a lock for a while after a server has lost its memory,
// so those losses are farther apart than that; a round without an entry in the storm is an error.
//
// A quorum has three such turns. Strict: one or two servers of five at a time are paused, killed to
// come back with their data or empty, or emptied at once, and nobody has to wait for that. Guard: also
// those by which all may have to wait, because a majority is lost, has forgotten, is full, or refuses; but
// there is no second holder. All: also those that end votes without a loss of memory.
//
// # Soak
//
// With -soak there is one round with one long storm, in which no client process is killed. After
// its first minute, and after all of it, everybody rests, and what processes and servers have is
// measured: heap, goroutines, connections, used_memory, keys. None may have grown by more than a
// bound (figures.go).
//
// # Not covered
//
//   - Several cuts between servers at a time, and cuts beside other faults of servers.
//   - Clocks that are stepped, or wrong all the time: the simulation has them.
//   - Members of a quorum that are primaries with replicas.
//   - Other servers than local processes.
//   - Callers that are no Go clients: the simulation has some, and integration/polyglot those of
//     each language.
package main
