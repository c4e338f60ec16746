// SPDX-License-Identifier: Apache-2.0

// Package conformance tests what the client's documentation says, on a single server of every
// flavour, a primary with replicas, Sentinel and Cluster. It has tests only.
package conformance
