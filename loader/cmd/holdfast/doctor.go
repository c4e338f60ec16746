// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const (
	slowTrip   = 10 * time.Millisecond // more than servers in one region take
	slowScript = 10 * time.Millisecond // the least that the slow log has, unless that is set
)

func doctorCommand(a *app) *cobra.Command {
	opt := doctor.Options{SlowScript: slowScript}
	var verbose bool
	cmd := &cobra.Command{
		Use:     "doctor",
		GroupID: groupDeploy,
		Short:   "Find what makes locks unsafe or slow, and say how to mend it",
		Long: `Doctor looks at every node of the deployment, at its sentinels, its clocks, and at the rights of the user that it
runs as. Each finding says what, at which node, why it matters and how to mend it. "danger" is for what can give a lock
to two, lose it, or give it to nobody; "slow" for what makes locks late; a "note" is good to know. It writes nothing: it
sends one message to a shard channel under the prefix, and turns tracking on and off on a connection of its own.

Run it as an administrator, who may see all settings, with --as and the name of your clients' user. What the caller's
own user may not look at is a note. Exit code 3 says that there is a danger or something slow, 1 that a primary, or an
address that was named, could not be reached. docs/doctor.md explains each code.`,
		Example: `  holdfast doctor --addr redis-1:6379 --user admin --as shop
  holdfast doctor --sentinel-master mymaster --addr sentinel-1:26379,sentinel-2:26379,sentinel-3:26379
  holdfast doctor --json | jq -r '.findings[] | select(.severity == "danger") | .code'`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.SlowTrip <= 0 {
				return usageError{errors.New("--slow must be positive")}
			}
			for _, code := range opt.Accept {
				if !doctor.Known(code) {
					return usageError{fmt.Errorf("--accept: there is no finding %q; docs/doctor.md has all", code)}
				}
			}
			return a.doctor(cmd.Context(), opt, verbose)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.Prefix, "prefix", defaultPrefix, "`text` that the keys of the locks begin with; '' leaves keys alone")
	flags.StringVar(&opt.As, "as", "", "look at the rights of the user of this `name`, not at those of --user")
	flags.BoolVar(&opt.Guard, "guard", false, "the clients use Config.Guard, or a quorum")
	flags.BoolVar(&opt.Replicas, "replicas", false, "the clients use Config.Replicas")
	flags.StringSliceVar(&opt.Accept, "accept", nil, "take findings with this `code` for notes; repeat it or separate by commas")
	flags.DurationVar(&opt.SlowTrip, "slow", slowTrip, "a median round trip above this `duration` is slow")
	flags.BoolVarP(&verbose, "verbose", "v", false, "also say what was looked at")
	return cmd
}

func (a *app) doctor(ctx context.Context, opt doctor.Options, verbose bool) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	opt.Timeout, opt.User = a.cfg.nodeTimeout(), cmp.Or(a.cfg.user, "default")
	progress := terminal.Watch(a.stderr)
	defer progress.End()
	progress.Say("examining ...")
	options, missed := deploymentsOf(ctx, &a.cfg)
	var failed []error
	var deployments []doctor.Deployment
	for _, option := range options {
		client, _, err := a.cfg.reach(ctx, option)
		if err != nil {
			failed = append(failed, err)
		}
		if client == nil {
			continue
		}
		defer client.Close()
		d := doctor.Deployment{Client: client, Dial: loader.Dialer(option)}
		if a.cfg.master != "" {
			d.Sentinels, d.Master, d.DialSentinel = a.cfg.addrs, a.cfg.master, a.cfg.dialSentinel(option)
		}
		deployments = append(deployments, d)
	}
	report := doctor.Examine(ctx, deployments, opt)
	progress.End()
	failed = append(failed, errorsOf(missed, func(addr string) bool { return slices.Contains(report.Nodes, addr) }))
	report.Errors = append(failed, report.Errors...)
	code := exitOK
	if report.Ill() {
		code = exitDiffers
	}
	if errors.Join(report.Errors...) != nil {
		code = exitFailed
	}
	a.printDoctor(report, code, verbose)
	return exit(code)
}

var severityColours = map[doctor.Severity]terminal.Colour{
	doctor.Danger: terminal.Red, doctor.Slow: terminal.Yellow, doctor.Note: terminal.Dim,
}

func (a *app) printDoctor(r doctor.Report, code int, verbose bool) {
	h := a.head(code, r.Errors...)
	if a.cfg.json {
		a.printJSON(struct {
			head
			Nodes    []string         `json:"nodes"`
			Checked  []string         `json:"checked"`
			Findings []doctor.Finding `json:"findings"`
		}{h, nonNil(r.Nodes), r.Checked, r.Findings})
		return
	}
	for _, line := range h.Errors {
		fmt.Fprintf(a.stderr, "holdfast doctor: %s\n", line)
	}
	printFindings(a.stdout, r.Findings)
	if len(r.Findings) == 0 && code == exitOK {
		fmt.Fprintln(a.stdout, "nothing found")
	}
	if verbose {
		fmt.Fprintf(a.stdout, "looked at %s\n", strings.Join(r.Nodes, ", "))
		for _, what := range r.Checked {
			fmt.Fprintln(a.stdout, "   ", what)
		}
	}
}

// printFindings says once for several nodes what is the same at each.
func printFindings(w io.Writer, findings []doctor.Finding) {
	paint := terminal.PainterFor(w)
	for len(findings) > 0 {
		f, nodes := findings[0], []string{}
		for len(findings) > 0 && same(findings[0], f) {
			nodes = append(nodes, findings[0].Node)
			findings = findings[1:]
		}
		where := strings.Join(nodes, ", ")
		if where != "" {
			where = " at " + where
		}
		accepted := ""
		if f.Accepted {
			accepted = " (accepted)"
		}
		fmt.Fprintf(w, "%s %s%s: %s\n", paint.Paint(severityColours[f.Severity], string(f.Severity)),
			paint.Paint(terminal.Bold, f.Code), where, printable(f.What)+accepted)
		fmt.Fprintf(w, "    why:  %s\n    mend: %s\n", f.Why, printable(f.Mend))
	}
}

func same(a, b doctor.Finding) bool { return a.Code == b.Code && a.What == b.What && a.Mend == b.Mend }
