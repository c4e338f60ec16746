package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// report is what a run came to. Its exported fields are report.json.
type report struct {
	Began      time.Time
	Took       string
	Rounds     int
	Quick      bool
	Partly     bool // not all workloads or rivals were asked for
	ServerCore *int // null: servers and clients share all cores
	Machine    string
	Cores      int
	Load       string // average of the machine before the run
	Go, Redis  string
	Versions   map[string]string // of the rivals' modules
	Settings   map[string]string // how each is set up
	Rows       []*row

	cells []cell
}

// row is one player in one cell.
type row struct {
	Workload, Case, Player string
	Medians                values
	Rounds                 []values
}

func newReport(s settings) report {
	r := report{Began: time.Now().UTC(), Quick: s.quick, Partly: s.workload+s.rival+s.against != "", Machine: processor(), Cores: runtime.NumCPU(),
		Load: loadAverage(), Go: runtime.Version(), Redis: "unknown", Versions: map[string]string{}, Settings: map[string]string{}}
	if f, err := server.Default(); err == nil {
		r.Redis = f.String()
	}
	for _, v := range rivals() {
		r.Settings[v.Name] = v.Settings
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(compared, m.Path) {
				r.Versions[m.Path] = m.Version
			}
		}
	}
	return r
}

// compared are the modules of which the versions matter; rueidislock is a package of rueidis.
var compared = []string{"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock", "github.com/redis/go-redis/v9"}

// loadAverage says whether others use this machine too.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
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
		at = &row{Workload: c.Workload, Case: c.Case, Player: player}
		r.Rows = append(r.Rows, at)
	}
	at.Rounds = append(at.Rounds, got)
	at.Medians = values{}
	for _, m := range c.columns() {
		if s, known := spreadOf(at.of(m)); known {
			at.Medians[m] = s.median
		}
	}
}

// row is that of a player in a cell; nil without.
func (r *report) row(c cell, player string) *row {
	for _, x := range r.Rows {
		if x.Workload == c.Workload && x.Case == c.Case && x.Player == player {
			return x
		}
	}
	return nil
}

// of is a metric of all rounds that know it.
func (x *row) of(metric string) (list []float64) {
	for _, v := range x.Rounds {
		if n, known := v[metric]; known {
			list = append(list, n)
		}
	}
	return list
}

// write writes report.md, report.json and hot.svg into a folder.
func (r *report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	r.Took = time.Since(r.Began).Round(time.Second).String()
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"report.json": string(text), "report.md": r.markdown(), "hot.svg": r.picture()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	say("# Holdfast beside its rivals")
	say("Written by `make bench`; see [how to read it](../README.md).")
	if r.Quick {
		say("**A quick run: it shows that all of it works. Its numbers mean little.**")
	}
	if r.Partly {
		say("**Only a part was run.**")
	}
	cores := fmt.Sprintf("%d cores for all", r.Cores)
	if r.ServerCore != nil {
		cores = fmt.Sprintf("a core for the servers, %d for the clients", r.Cores-1)
	}
	say("%s, %d rounds in %s; %s, %s, %s; Redis: %s, without persistence; load average at the begin: %s.", r.Began.Format("2006-01-02 15:04 MST"),
		r.Rounds, r.Took, r.Machine, cores, r.Go, r.Redis, r.Load)
	say("Medians of the rounds. In brackets are the least and the most.")
	r.losses(&b)
	for _, s := range sections {
		r.section(&b, s)
	}
	b.WriteString("## Settings\n\n| | set up |\n| --- | --- |\n")
	for _, v := range rivals() {
		fmt.Fprintf(&b, "| %s | %s |\n", v.Name, r.Settings[v.Name])
	}
	b.WriteString("\n")
	for _, path := range compared {
		say("%s %s", path, r.Versions[path])
	}
	return b.String()
}

// judged are the metrics in which a row is won or lost.
var judged = []string{mRate, mP99, mFair}

// lost are the judged metrics in which another one is better than Holdfast, as a ratio of rounds:
// its number over ours.
func (r *report) lost(c cell, other *row) (list []string) {
	ours := r.row(c, holdfastName)
	if ours == nil || ours == other {
		return nil
	}
	for _, m := range judged {
		if x, known := ours.Medians[m]; known && slices.Contains(c.columns(), m) {
			if y, known := other.Medians[m]; known && better(m, y, x) {
				list = append(list, m)
			}
		}
	}
	return list
}

// better reports whether x is a better number than y. Of all but rates less is better.
func better(metric string, x, y float64) bool {
	if metric == mRate {
		return x > y
	}
	return x < y
}

// losses lists every row that beats Holdfast.
func (r *report) losses(b *strings.Builder) {
	b.WriteString("## Where Holdfast loses\n\nRatios are the other one's number over Holdfast's in the same round.\n\n" +
		"| workload | case | to | in | ratio |\n| --- | --- | --- | --- | ---: |\n")
	for _, c := range r.cells {
		for _, x := range r.in(c) {
			for _, m := range r.lost(c, x) {
				s, _ := spreadOf(ratios(x.Rounds, r.row(c, holdfastName).Rounds, m))
				fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", c.Workload, c.Case, x.Player, labels[m], s)
			}
		}
	}
	b.WriteString("\n")
}

// in are the rows of a cell, in the order of the players.
func (r *report) in(c cell) (list []*row) {
	for _, x := range r.Rows {
		if x.Workload == c.Workload && x.Case == c.Case {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(x, y *row) int { return rank(x.Player) - rank(y.Player) })
	return list
}

func rank(player string) int {
	return slices.IndexFunc(rivals(), func(v rival) bool { return v.Name == player })
}

// section has a table for each case of a workload. Rows that beat Holdfast are marked, and so are
// their numbers.
func (r *report) section(b *strings.Builder, s section) {
	if !slices.ContainsFunc(r.cells, func(c cell) bool { return c.Workload == s.Name }) {
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s\n\n", s.Title, s.Note)
	for _, c := range r.cells {
		if c.Workload != s.Name {
			continue
		}
		fmt.Fprintf(b, "### %s\n\n| |", c.Case)
		for _, m := range s.columns {
			fmt.Fprintf(b, " %s |", labels[m])
		}
		fmt.Fprintf(b, "\n| --- |%s\n", strings.Repeat(" ---: |", len(s.columns)))
		for _, x := range r.in(c) {
			lost, mark := r.lost(c, x), ""
			if len(lost) > 0 {
				mark = " ▲"
			}
			fmt.Fprintf(b, "| %s%s |", x.Player, mark)
			for _, m := range s.columns {
				text := "–"
				if s, known := spreadOf(x.of(m)); known {
					text = show(s.median)
					if slices.Contains(judged, m) && len(x.Rounds) > 1 {
						text = s.String()
					}
				}
				if slices.Contains(lost, m) {
					text = "**" + text + "**"
				}
				fmt.Fprintf(b, " %s |", text)
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
}

// ratioTable compares this working tree with a commit: a row for each metric of each cell.
func (r *report) ratioTable(commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Load average: %s at the begin, %s at the end.\n\n| workload | case | metric | here | %s | here / there |\n", r.Load, loadAverage(), commit)
	fmt.Fprintf(&b, "| --- | --- | --- | ---: | ---: | ---: |\n")
	for _, c := range r.cells {
		here, there := r.row(c, holdfastName), r.row(c, commit)
		if here == nil || there == nil {
			continue
		}
		for _, m := range c.columns() {
			if s, known := spreadOf(ratios(here.Rounds, there.Rounds, m)); known {
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.Workload, c.Case, labels[m], show(here.Medians[m]), show(there.Medians[m]), s)
			}
		}
	}
	return b.String()
}
