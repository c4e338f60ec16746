// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader"
)

func loadCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "load",
		GroupID: groupDeploy,
		Short:   "Load or upgrade the library on every primary; a second run changes nothing",
		Long: `Load brings the library of this release onto every primary, and waits until the replicas have it too. It is safe
while locks are held and waited for. A second run changes nothing.

A newer library stays: it serves what this release's does. --force goes back to this one.

The first number of a version is that of the contract between the library and its callers. Load refuses to put one over
another contract, whose callers would not understand it: --force does that, when nobody uses that one any more.

The user needs what "holdfast acl --for loader" prints.`,
		Example: `  holdfast load --addr redis-1:6379
  holdfast load --addr redis-1:6379 --dry-run
  holdfast load --addr sentinel-1:26379 --sentinel-master mymaster`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tend(cmd.Context(), loader.Load) },
	}
	a.cfg.bindLibrary(cmd.Flags())
	a.cfg.bindChange(cmd.Flags(), "load over a newer library, over one of another contract, or over another's that has our names")
	return cmd
}
