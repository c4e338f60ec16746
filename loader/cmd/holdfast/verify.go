// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader"
)

func verifyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "verify",
		GroupID: groupDeploy,
		Short:   "Check that every node has the library or a newer one, and name settings that can lose locks",
		Long: `Verify looks at every node, replicas too, and compares its library with the one in this command. It also names
settings by which a server can lose locks. It writes nothing.

The user needs what "holdfast acl --for loader" prints, and +config|get to see the settings.`,
		Example: `  holdfast verify --addr redis-1:6379
  holdfast verify --addr redis-1:6379 --json | jq .nodes`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tend(cmd.Context(), loader.Verify) },
	}
	a.cfg.bindLibrary(cmd.Flags())
	return cmd
}
