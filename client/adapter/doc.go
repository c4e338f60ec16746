// SPDX-License-Identifier: Apache-2.0

// Package adapter has nothing in it. Its directories are modules of their own, which plug Holdfast into
// other projects: see docs/adapters.md. Who imports one has that project in its go.sum already, and who
// imports only the client has none of them.
package adapter
