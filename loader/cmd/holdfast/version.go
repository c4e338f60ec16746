package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: groupDeploy,
		Short:   "Print the version of the library in this command, and those on the servers",
		Long: `Version prints the version of the library in this command, and those on the servers. Without --addr or
HOLDFAST_ADDR it is no failure if there is no server.`,
		Example: `  holdfast version
  holdfast version --addr redis-1:6379 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.versions(cmd.Context()) },
	}
}

func (a *app) versions(ctx context.Context) error {
	if !a.cfg.json {
		fmt.Fprintf(a.stdout, "holdfast %s (the library in this command)\n", functions.Version)
	}
	return a.tend(ctx, loader.Verify)
}
