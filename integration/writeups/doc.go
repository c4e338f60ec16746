// Package writeups holds what published write-ups of a lock on Redis describe,
// warn of, or get wrong themselves, as tests. Each first makes the naive way
// fail, with plain commands on the same server, interleaved step by step, so that
// it fails every time; then it shows that Holdfast does not. They are called by
// number:
//
//   - S0: an annotation over SET NX PX with release in Lua, 2017
//   - S1: an annotation with waiting, renewal and a maximum of renewals, 2024
//   - S2: a critique of a well-known registry of locks, 2020
//   - S3: a small lock with a flash sale as its test, 2021
//   - S4: an evolution in six steps, from SETNX to re-entry and Redlock
//
// What else they ask for is shown by package conformance: errors in an outage,
// results and errors of functions, names, bounded waits, re-entry, maxima.
package writeups
