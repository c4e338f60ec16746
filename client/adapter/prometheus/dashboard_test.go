// SPDX-License-Identifier: Apache-2.0

package holdfastprom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/client/adapter/internal/measure"
	holdfastprom "github.com/holdfast-go/holdfast/client/adapter/prometheus"
)

// described are the metrics that a Collector has, and their labels.
func described() map[string][]string {
	to := make(chan *prometheus.Desc, 100)
	holdfastprom.New(holdfastprom.Options{Group: strings.ToLower}).Describe(to)
	close(to)
	found := map[string][]string{}
	for d := range to {
		parts := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		labels := strings.Split(parts[2], ",")
		if name := parts[1]; strings.HasSuffix(name, "_seconds") {
			found[name+"_bucket"] = append(slices.Clone(labels), "le")
			found[name+"_sum"], found[name+"_count"] = labels, labels
		} else {
			found[name] = labels
		}
	}
	return found
}

var (
	metricName = regexp.MustCompile(`\bholdfast_\w+`)
	selector   = regexp.MustCompile(`\bholdfast_\w+\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"([^"]*)"`)
	grouping   = regexp.MustCompile(`\bby ?\(([^)]*)\)`)
)

// wrong returns what a query asks for that no Collector has.
func wrong(query string) (found []string) {
	has, targets := described(), []string{"job", "instance", ""}
	labels := slices.Clone(targets)
	names := metricName.FindAllString(query, -1)
	if len(names) == 0 {
		return []string{"no metric in " + query}
	}
	for _, name := range names {
		if has[name] == nil {
			found = append(found, "no metric "+name)
		}
		labels = append(labels, has[name]...)
	}
	for _, s := range selector.FindAllStringSubmatch(query, -1) {
		name, _, _ := strings.Cut(s[0], "{")
		for _, m := range matcher.FindAllStringSubmatch(s[1], -1) {
			if !slices.Contains(append(has[name], targets...), m[1]) {
				found = append(found, name+" has no label "+m[1])
			}
			for _, word := range strings.Split(m[2], "|") {
				named := m[1] == "lock" || strings.HasPrefix(word, "$") // by the program, or who looks
				if !named && !slices.Contains(measure.Words(), word) {
					found = append(found, name+" has never "+m[1]+" "+word)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				found = append(found, "no label "+label+" in "+query)
			}
		}
	}
	return found
}

func TestWrongQueriesAreFound(t *testing.T) {
	require.Len(t, described(), 3*3+5)
	require.Empty(t, wrong(`histogram_quantile(0.5, sum by (le, lock) (rate(holdfast_lock_wait_seconds_bucket{outcome=~"busy|timeout"}[5m])))`))
	for _, query := range []string{"up", "holdfast_lock_holding", `holdfast_lock_held{end="taken"}`, `holdfast_lock_lost_total{cause="gone"}`,
		"sum by (le) (holdfast_lock_held)", "holdfast_lock_wait_seconds", `holdfast_lock_lost_total{cause=~"taken|gone"}`} {
		require.NotEmpty(t, wrong(query), query)
	}
}

// Each panel asks for what there is, and says what to do; each metric is on some panel.
func TestTheDashboard(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	require.NotEmpty(t, dashboard.Title)
	ids, shown := map[int]bool{}, map[string]bool{}
	for _, p := range dashboard.Panels {
		require.False(t, ids[p.ID], "two panels %d", p.ID)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		require.Contains(t, p.Description, "Do: ", p.Title)
		require.Greater(t, len(p.Description), 60, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			require.Empty(t, wrong(target.Expr), p.Title)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[name] = true
			}
		}
	}
	for name := range described() {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		require.True(t, shown[name] || shown[base+"_bucket"] || shown[base+"_count"], "%s is on no panel", name)
	}
}

// The rules of the page for those who are called at night ask for what there is.
func TestTheAlerts(t *testing.T) {
	page, err := os.ReadFile("../../../docs/observing.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 1)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(blocks[0][1], &file))
	require.Len(t, file.Groups, 1)
	require.GreaterOrEqual(t, len(file.Groups[0].Rules), 5)
	for _, r := range file.Groups[0].Rules {
		require.Empty(t, wrong(r.Expr), r.Alert)
		require.NotEmpty(t, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, string(page), "### "+r.Alert+"\n", "what to do")
	}
	for name := range described() {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		require.Contains(t, string(page), "`"+base+"`")
	}
}
