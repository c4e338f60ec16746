// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader"
)

func unloadCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unload",
		GroupID: groupDeploy,
		Short:   "Delete the library; locks that are held then end with their leases",
		Long: `Unload deletes the library, of whatever version, from every primary. Locks that are held end with their
leases, because nobody can renew or release them any more: unload only what nobody uses.

The user needs what "holdfast acl --for loader --unload" prints.`,
		Example: `  holdfast unload --addr redis-1:6379 --dry-run
  holdfast unload --addr redis-1:6379`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tend(cmd.Context(), loader.Unload) },
	}
	a.cfg.bindLibrary(cmd.Flags())
	a.cfg.bindChange(cmd.Flags(), "delete another's library that has our name too")
	return cmd
}
