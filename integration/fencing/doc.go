// SPDX-License-Identifier: Apache-2.0

// Package fencing tries client/fence and the statements of docs/fencing.md on PostgreSQL, MariaDB and
// SQLite, with holders that write late.
package fencing
