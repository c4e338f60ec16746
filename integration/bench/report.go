package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// report is what is written about a run.
type report struct {
	began     time.Time
	load      string // average of the machine before the run
	rounds    int
	quick     bool
	partly    bool // not all workloads or rivals were asked for
	cores     string
	rivals    []rival
	workloads []workload
	results   results
}

// write writes report.md and the plots into a folder.
func (r report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	drawn, err := r.plots(folder)
	if err != nil {
		return err
	}
	var b strings.Builder
	r.head(&b)
	r.bars(&b)
	for _, p := range drawn {
		fmt.Fprintf(&b, "![%s](%s)\n\n", p.title, p.file)
	}
	for _, w := range r.workloads {
		r.section(&b, w)
	}
	r.settings(&b)
	return os.WriteFile(filepath.Join(folder, "report.md"), []byte(b.String()), 0o644)
}

func (r report) head(b *strings.Builder) {
	fmt.Fprintf(b, "# Holdfast beside its rivals\n\nWritten by `make bench`; see [how to read it](../README.md).\n\n")
	if r.quick {
		fmt.Fprintf(b, "**A quick run: it shows that all of it works. Its numbers mean little.**\n\n")
	}
	if r.partly {
		fmt.Fprintf(b, "**Only a part was run: what was not shows as –.**\n\n")
	}
	redis := "the server's version is unknown"
	if f, err := server.Default(); err == nil {
		redis = f.String()
	}
	cores := fmt.Sprintf("%d cores for all", runtime.NumCPU())
	if r.cores == coresApart {
		cores = fmt.Sprintf("a core for the servers, %d for the clients", runtime.NumCPU())
	}
	fmt.Fprintf(b, "%s, %d rounds in %v; %s, %s, %s; Redis: %s, without persistence; load average at the begin: %s.\n\n", r.began.UTC().Format("2006-01-02 15:04 MST"),
		r.rounds, time.Since(r.began).Round(time.Second), processor(), cores, runtime.Version(), redis, r.load)
}

// loadAverage reports whether others use this machine too.
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

func (r report) bars(b *strings.Builder) {
	fmt.Fprintf(b, "## The bars\n\n| workload | bar | measured | |\n| --- | --- | --- | --- |\n")
	for _, bar := range bars() {
		measured, verdict := bar.verdict(r.results)
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", bar.Workload, bar.Wanted, measured, verdict)
	}
	fmt.Fprintln(b)
}

// section is one workload: a table for each case, or one in all if each case has one rival.
func (r report) section(b *strings.Builder, w workload) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n", w.Title, w.Note)
	var heads []string
	for _, m := range w.Columns {
		heads = append(heads, labels[m])
	}
	open := func(first string) {
		fmt.Fprintf(b, "| %s | %s |\n| --- |%s\n", first, strings.Join(heads, " | "), strings.Repeat(" ---: |", len(heads)))
	}
	single := !slices.ContainsFunc(w.Cells, func(c cell) bool { return len(r.had(w, c)) > 1 })
	if single {
		open("")
	}
	for _, c := range w.Cells {
		had := r.had(w, c)
		if len(had) > 0 && !single {
			fmt.Fprintf(b, "### %s\n\n", c.Case)
			open("")
		}
		for _, name := range had {
			first := name
			if single {
				first = c.Case
			}
			fmt.Fprintf(b, "| %s |", first)
			for _, m := range w.Columns {
				x := r.results.get(w.Name, c.Case, name, m)
				fmt.Fprintf(b, " %s |", show(x, !math.IsNaN(x)))
			}
			fmt.Fprintln(b)
		}
		if !single {
			fmt.Fprintln(b)
		}
	}
	fmt.Fprintln(b)
}

// had are the rivals that were measured in a cell.
func (r report) had(w workload, c cell) (list []string) {
	for _, v := range r.rivals {
		if len(r.results[where{w.Name, c.Case, v.Name}]) > 0 {
			list = append(list, v.Name)
		}
	}
	return list
}

// compared are the modules of which the versions matter.
var compared = []string{"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock",
	"github.com/redis/go-redis/v9", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3"}

func (r report) settings(b *strings.Builder) {
	fmt.Fprintf(b, "## Settings\n\n| | set up |\n| --- | --- |\n")
	for _, v := range r.rivals {
		fmt.Fprintf(b, "| %s | %s |\n", v.Name, v.Settings)
	}
	fmt.Fprintf(b, "\nLeases are %v where nothing else is said. Versions: ", lease)
	var versions []string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(compared, m.Path) {
				versions = append(versions, m.Path+" "+m.Version)
			}
		}
	}
	fmt.Fprintf(b, "%s (rueidislock is a package of rueidis).\n", strings.Join(versions, ", "))
}
