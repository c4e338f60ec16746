// SPDX-License-Identifier: Apache-2.0

// Package server starts real Redis and Valkey servers for tests, demos and
// benchmarks: a single server, a primary with replicas, Sentinel, Cluster, and
// several servers that know nothing of each other.
//
// The server is the first of these that the machine has:
//
//  1. the one at HOLDFAST_REDIS (host:port or a redis:// URL). It serves Single
//     only, is neither emptied nor reconfigured, and tests that own their
//     server (Owned, WithConfig, WithACL, the other kinds) use the next rule;
//  2. redis-server or valkey-server, 7.0 or later, as local processes;
//  3. containers, by the docker command, where the engine is on this machine
//     and has a host network;
//  4. redis-server, installed with the system's package manager.
//
// Environment:
//
//	HOLDFAST_REDIS    address of a server to use for Single
//	HOLDFAST_RUNTIME  "local" or "container" forces rule 2 or 3
//	HOLDFAST_IMAGES   comma list of images, which forces rule 3; default redis:7.4,redis:8,valkey/valkey:8
//	HOLDFAST_TESTED   version of Redis, for example 7.0, whose container is left out
//	HOLDFAST_SERVERS  comma list of server binaries, default those on PATH
//
// One line on standard error says which server is used. Each server is removed
// by Close (under a test, at its end), and by a small watching shell process if
// this process ends in any other way: a panic, an interrupt, SIGKILL. The
// package needs a Unix with /bin/sh. Servers of one image share a container,
// which ends with this process; the image needs sh, base64 and setsid.
package server
