// SPDX-License-Identifier: Apache-2.0

// Package failure tests the client against real faults: processes killed and paused, connections
// stalled and cut, replies and messages lost, failovers, moved slots, libraries replaced
// under load, passwords renewed. It has tests only.
package failure
