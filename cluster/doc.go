// SPDX-License-Identifier: Apache-2.0

// Package cluster knows two things about a Redis or Valkey deployment: which hash slot a key
// belongs to, and which primaries and replicas there are. It knows nothing about locks.
//
// The rules are those of the Redis Cluster specification,
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/, sections "Key
// distribution model" (slots), "Hash tags", and "Cluster nodes attributes" (CLUSTER NODES).
package cluster
