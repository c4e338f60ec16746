// SPDX-License-Identifier: Apache-2.0

// Package holdfastgoredis makes the options of Holdfast's client from those of go-redis, so that a
// program that has a go-redis client does not configure its Redis twice.
//
//	import holdfastgoredis "github.com/holdfast-go/holdfast/client/adapter/goredis"
//
//	option, err := holdfastgoredis.Single(&redis.Options{Addr: "127.0.0.1:6379", Password: secret})
//	...
//	c, err := client.Open(option, client.Config{})
//
// [Single], [Cluster], [Failover] and [Universal] are for the options that redis.NewClient,
// NewClusterClient, NewFailoverClient and NewUniversalClient take. The connections are Holdfast's own:
// one for commands and one for messages for each node. Nothing connects here; client.Open does.
//
// # What is mapped
//
//   - the addresses, Network (unix too), Dialer, DialTimeout and TLSConfig; a Dialer makes TLS itself, as
//     with go-redis. Single and Universal stay with the one server that they name, also if that is a node
//     of a Cluster
//   - Username, Password, CredentialsProvider and CredentialsProviderContext, DB
//   - MasterName, and SentinelUsername and SentinelPassword for the sentinels
//   - ClientName, DisableIdentity and IdentitySuffix. Protocol 2 also switches client-side caching off
//   - ReadTimeout and WriteTimeout: the longer one, as ConnWriteTimeout, after which a silent connection
//     is given up. Where none is set it is 10 s. Each call of Holdfast also ends with its own context,
//     whatever ContextTimeoutEnabled is
//
// # What is not
//
// An option that is set, and that Holdfast's client cannot have, is an error that names it: an
// [UnmappedError] has all of them. Nothing is dropped in silence, nor an option that go-redis will have
// some day. Name what may be left out with [Without]:
//
//	option, err := holdfastgoredis.Universal(opts,
//		holdfastgoredis.WithoutTuning(), holdfastgoredis.Without("OnConnect"))
//
// [WithoutTuning] names all that is about the inside of a go-redis client: its pool, buffers, retries,
// pipelines and caches, and where it sends reads. Holdfast has its own, and locks are never read from a
// replica.
//
// There is no mapping of redis.RingOptions: a ring has no failover that locks could survive. Open a
// client for one of its servers, or quorum.Open for several.
package holdfastgoredis
