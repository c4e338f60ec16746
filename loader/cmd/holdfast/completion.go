// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

const (
	completeWithin = 2 * time.Second
	completeAt     = 200 // names at most
)

// offer completes the words that a flag takes.
func offer[T ~string](cmd *cobra.Command, flag string, words ...T) {
	var texts []string
	for _, word := range words {
		texts = append(texts, string(word))
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp))
}

// completeName offers the names of locks to the shell. What fails offers nothing.
func (a *app) completeName(w *where) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 || a.cfg.complete() != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		a.cfg.timeout = completeWithin
		view, end, err := a.view(ctx, *w)
		if err != nil {
			return nil, none
		}
		defer end()
		list, _ := view.List(ctx, locks.Filter{Limit: completeAt, Any: true, Pattern: locks.Literal(typed) + "*"}, nil)
		var names []string
		for _, l := range list.Locks {
			if !strings.ContainsAny(l.Name, "\t\n\r") {
				names = append(names, cobra.CompletionWithDesc(l.Name, printable(l.String())))
			}
		}
		return names, none
	}
}
