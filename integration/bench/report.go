// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// report is what a run came to.
type report struct {
	began   time.Time
	commit  string // that is measured
	quick   bool
	partly  bool // not all workloads or rivals were asked for
	core    *int // of the servers; nil: they share all cores with the clients
	servers []string
	load    string // average of the machine before the run
	rounds  int
	cells   []cell
	rows    []*row
}

// row is one player in one cell.
type row struct {
	cell    cell
	player  string
	medians values
	rounds  []values
}

// products are the servers as people call them.
var products = strings.NewReplacer("redis-server", "Redis", "valkey-server", "Valkey", "holdfast-test/redis:", "Redis ",
	"holdfast-test/valkey:", "Valkey ", "valkey/valkey:", "Valkey ", "redis:", "Redis ")

func newReport(s settings) report {
	r := report{began: time.Now().UTC(), commit: commit(), quick: s.Quick, partly: s.workload+s.against != "", load: loadAverage()}
	for _, f := range s.Flavours {
		r.servers = append(r.servers, products.Replace(cmp.Or(f.Version, f.Image)))
	}
	return r
}

// commit names the working tree.
func commit() string {
	text, _ := exec.Command("git", "describe", "--always", "--dirty").Output() // nothing, if it fails
	return cmp.Or(strings.TrimSpace(string(text)), "unknown")
}

// versions are those of the modules that matter; rueidislock is a package of rueidis.
func versions() (list []string) {
	matter := []string{"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock", "github.com/redis/go-redis/v9"}
	info, _ := debug.ReadBuildInfo() // there is one, because there are modules
	for _, m := range info.Deps {
		if slices.Contains(matter, m.Path) {
			list = append(list, m.Path+" "+m.Version)
		}
	}
	return list
}

// loadAverage says whether others use this machine too.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // Linux has it
	first, _, _ := strings.Cut(string(text), " ")
	return cmp.Or(first, "unknown")
}

// processor is the name of this machine's CPU.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // elsewhere than on Linux its architecture must do
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOOS + " " + runtime.GOARCH
}

// add takes the numbers of one round.
func (r *report) add(c cell, player string, got values) {
	at := r.row(c, player)
	if at == nil {
		at = &row{cell: c, player: player}
		r.rows = append(r.rows, at)
	}
	at.rounds = append(at.rounds, got)
	at.medians = values{}
	for _, m := range c.section().columns {
		if s, known := spreadOf(at.of(m)); known {
			at.medians[m] = s.median
		}
	}
}

// row is that of a player in a cell; nil without.
func (r *report) row(c cell, player string) *row {
	for _, x := range r.rows {
		if x.cell == c && x.player == player {
			return x
		}
	}
	return nil
}

// of is a metric of all rounds that know it.
func (x *row) of(metric string) (list []float64) {
	for _, v := range x.rounds {
		if n, known := v[metric]; known {
			list = append(list, n)
		}
	}
	return list
}

// write writes benchmark.md and hot.svg into a folder.
func (r *report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmark.md"), []byte(r.markdown()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "hot.svg"), []byte(r.picture()), 0o644)
}

func (r *report) markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	say("# Holdfast beside its rivals")
	say("Written by [`make bench`](../integration/bench/README.md), which says how to read it.")
	if r.quick {
		say("**A quick run: it shows that all of it works. Its numbers mean little.**")
	}
	if r.partly {
		say("**Only a part was run.**")
	}
	cores := fmt.Sprintf("%d cores for all", runtime.NumCPU())
	if r.core != nil {
		cores = fmt.Sprintf("a core for the servers, %d for the clients", runtime.NumCPU()-1)
	}
	say("- Holdfast: commit %s, %s\n- Time: %s, %d rounds in %v\n- Servers: %s, without persistence\n- Machine: %s, %s, %s; load average at the begin: %s",
		r.commit, runtime.Version(), r.began.Format("2006-01-02 15:04 MST"), r.rounds, time.Since(r.began).Round(time.Second),
		strings.Join(r.servers, ", "), processor(), runtime.GOOS, cores, r.load)
	say("Medians of the rounds. In brackets are the least and the most.")
	r.glance(&b)
	r.losses(&b)
	for _, s := range sections {
		r.section(&b, s)
	}
	b.WriteString("## Settings\n\n| | set up |\n| --- | --- |\n")
	for _, v := range rivals() {
		fmt.Fprintf(&b, "| %s | %s |\n", v.Name, v.Settings)
	}
	say("\n%s", strings.Join(versions(), ", "))
	return strings.TrimSpace(b.String()) + "\n"
}

// glance is the table of the README: the rates of the first server.
func (r *report) glance(b *strings.Builder) {
	fmt.Fprintf(b, "%s\n\n| per second, %s | Holdfast | best other |\n| --- | ---: | ---: |\n", glanceTitle, r.servers[0])
	for _, c := range r.cells {
		ours := r.row(c, holdfastName)
		if c.server > 0 || c.group != "" || ours == nil || c.kind == openKind {
			continue
		}
		best, name := 0.0, ""
		for _, x := range r.in(c) {
			if x != ours && !x.baseline() && x.medians[mRate] > best {
				best, name = x.medians[mRate], x.player
			}
		}
		rate, other := three(ours.medians[mRate]), three(best)
		if best > ours.medians[mRate] {
			other = "**" + other + "**"
		}
		fmt.Fprintf(b, "| %s | %s | %s %s |\n", c, rate, other, name)
	}
	b.WriteString("\n")
}

const glanceTitle = "## At a glance"

// three rounds a rate to three digits.
func three(x float64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(max(1, x)))-2))
	return thousands(int(math.Round(x/unit) * unit))
}

// baseline reports whether a row is no lock.
func (x *row) baseline() bool {
	return slices.ContainsFunc(rivals(), func(v rival) bool { return v.Name == x.player && v.Baseline })
}

// judged are the metrics in which a row is won or lost.
var judged = []string{mRate, mP99, mFair, mOpen, mIdle}

// lost are the judged metrics in which another one is better than Holdfast, as a ratio of rounds:
// its number over ours.
func (r *report) lost(c cell, other *row) (list []string) {
	ours := r.row(c, holdfastName)
	if ours == nil || ours == other || other.baseline() {
		return nil
	}
	for _, m := range judged {
		if x, known := ours.medians[m]; known && slices.Contains(c.section().columns, m) {
			if y, known := other.medians[m]; known && (m == mRate && y > x || m != mRate && y < x) { // less is better, but of rates
				list = append(list, m)
			}
		}
	}
	return list
}

// losses lists every row that beats Holdfast.
func (r *report) losses(b *strings.Builder) {
	b.WriteString("## Where Holdfast loses\n\nRatios are the other one's number over Holdfast's in the same round.\n\n" +
		"| case | server | to | in | ratio |\n| --- | --- | --- | --- | ---: |\n")
	for _, c := range r.cells {
		for _, x := range r.in(c) {
			for _, m := range r.lost(c, x) {
				s, _ := spreadOf(ratios(x.rounds, r.row(c, holdfastName).rounds, m))
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", c, r.servers[c.server], x.player, labels[m], s)
			}
		}
	}
	b.WriteString("\n")
}

// in are the rows of a cell, in the order of the players.
func (r *report) in(c cell) (list []*row) {
	for _, x := range r.rows {
		if x.cell == c {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(x, y *row) int { return rank(x.player) - rank(y.player) })
	return list
}

func rank(player string) int {
	return slices.IndexFunc(rivals(), func(v rival) bool { return v.Name == player })
}

// section has a table for each case of a workload, or one for all steps of growth. Rows that beat Holdfast
// are marked, and so are their numbers.
func (r *report) section(b *strings.Builder, s section) {
	titled := ""
	for _, c := range r.cells {
		if c.workload != s.name {
			continue
		}
		if titled == "" {
			fmt.Fprintf(b, "## %s\n\n%s\n", s.title, s.note)
		}
		if heading := c.title; titled != heading && (titled == "" || c.group == "") {
			if titled = heading; c.group == "" {
				fmt.Fprintf(b, "\n### %s\n", heading)
			}
			fmt.Fprintf(b, "\n| | server |")
			for _, m := range s.columns {
				fmt.Fprintf(b, " %s |", labels[m])
			}
			fmt.Fprintf(b, "\n| --- | --- |%s\n", strings.Repeat(" ---: |", len(s.columns)))
		}
		for _, x := range r.in(c) {
			r.line(b, x, s.columns)
		}
	}
	if titled != "" {
		b.WriteString("\n")
	}
}

// line is one row of a table.
func (r *report) line(b *strings.Builder, x *row, columns []string) {
	lost, name := r.lost(x.cell, x), x.player
	switch {
	case x.cell.group != "":
		name = x.cell.title
	case x.baseline():
		name += " (no lock)"
	case len(lost) > 0:
		name += " ▲"
	}
	fmt.Fprintf(b, "| %s | %s |", name, r.servers[x.cell.server])
	for _, m := range columns {
		list, text := x.of(m), "–"
		if ours := r.row(x.cell, holdfastName); m == mRatio && ours != nil && ours != x {
			list = ratios(ours.rounds, x.rounds, mRate)
		}
		if s, known := spreadOf(list); known {
			text = show(s.median)
			if (m == mRatio || slices.Contains(judged, m)) && len(list) > 1 {
				text = s.String()
			}
		}
		if slices.Contains(lost, m) {
			text = "**" + text + "**"
		}
		if before := r.before(x); before != nil && (m == mServerCPU || m == mClientCPU) {
			text += fmt.Sprintf(" (×%s)", show(x.medians[m]/before.medians[m]))
		}
		fmt.Fprintf(b, " %s |", text)
	}
	b.WriteString("\n")
}

// before is the step before one of growth; nil without.
func (r *report) before(x *row) *row {
	for _, o := range slices.Backward(r.rows[:slices.Index(r.rows, x)]) {
		if x.cell.group != "" && o.cell.group == x.cell.group && o.cell.server == x.cell.server {
			return o
		}
	}
	return nil
}

// ratioTable compares this working tree with a commit: a row for each metric of each cell.
func (r *report) ratioTable(commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Load average: %s at the begin, %s at the end.\n\n| case | metric | here | %s | here / there |\n| --- | --- | ---: | ---: | ---: |\n",
		r.load, loadAverage(), commit)
	for _, c := range r.cells {
		here, there := r.row(c, holdfastName), r.row(c, commit)
		if here == nil || there == nil {
			continue
		}
		for _, m := range c.section().columns {
			if s, known := spreadOf(ratios(here.rounds, there.rounds, m)); known {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c, labels[m], show(here.medians[m]), show(there.medians[m]), s)
			}
		}
	}
	return b.String()
}
