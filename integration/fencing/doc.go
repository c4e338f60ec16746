// Package fencing runs the statements of docs/fencing.md on PostgreSQL and SQLite, with holders that
// write late.
package fencing
