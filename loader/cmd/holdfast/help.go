// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// knownTopic refuses to help with what is no command.
func knownTopic(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || about == cmd.Root() && len(args) > 0 {
		return knownCommand(cmd.Root(), args)
	}
	return atMost(0)(cmd, rest)
}

const width = 110

// ownFlags are those of one command, in the order of their definition.
func ownFlags(cmd *cobra.Command) string {
	return strings.TrimRight(cmd.LocalNonPersistentFlags().FlagUsagesWrapped(width), "\n")
}

// commonFlags are those of every command; of a sub-command, only their names.
func commonFlags(cmd *cobra.Command) string {
	all := cmd.Root().PersistentFlags()
	if !cmd.HasParent() {
		return strings.TrimRight(all.FlagUsagesWrapped(width), "\n")
	}
	var lines []string
	line := " "
	all.VisitAll(func(f *pflag.Flag) {
		if len(line)+len(f.Name) > width-4 {
			lines, line = append(lines, line), " "
		}
		line += " --" + f.Name
	})
	return strings.Join(append(lines, line), "\n")
}

// about is what every help ends with.
func about(cmd *cobra.Command) string {
	text := exitCodes
	if own := cmd.Annotations[ownExitCodes]; own != "" {
		text = own
	}
	if !cmd.HasParent() {
		text += "\n\"holdfast COMMAND --help\" says more of each. \"holdfast acl\" prints the rights that a user needs.\n"
	} else if cmd.HasSubCommands() {
		text += fmt.Sprintf("\n\"%s COMMAND --help\" says more of each.\n", cmd.CommandPath())
	}
	return text
}

const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND [flags]{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Example:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}{{$all := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}

{{if .Groups}}Others{{else}}Commands{{end}}:
{{- range $all}}{{if and (eq .GroupID "") .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}
{{- with ownFlags .}}

Flags:
{{.}}
{{- end}}

Flags of every command{{if .HasParent}} ("holdfast help" explains them){{end}}:
{{commonFlags .}}

{{about .}}`
