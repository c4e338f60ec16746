// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// browse runs a browser without a window on a page.
func browse(t *testing.T, url string, args ...string) (dom string) {
	t.Helper()
	var found string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
		}
	}
	if found == "" {
		t.Skip("there is no chromium")
	}
	// Virtual time stands still while the page waits for an answer, so the budget is no race.
	args = append(args, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=2500", url)
	cmd := exec.CommandContext(t.Context(), found, args...)
	out, err := cmd.Output()
	require.NoError(t, err, "%v", cmd)
	return string(out)
}

// part is what an element of the page shows: the text, and that of each cell.
type part struct {
	hidden bool
	text   string
	rows   [][]string
}

// parts reads the elements of a page that have names.
func parts(t *testing.T, dom string) map[string]*part {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(dom))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	all := map[string]*part{}
	var open []*part // for each element that is open, what it belongs to
	for {
		token, _ := d.Token() // the end of the file is nil
		switch token := token.(type) {
		case nil:
			return all
		case xml.StartElement:
			at := &part{}
			if len(open) > 0 {
				at = open[len(open)-1]
			}
			for _, a := range token.Attr {
				if a.Name.Local == "id" {
					at = &part{}
					all[a.Value] = at
				}
				at.hidden = at.hidden || a.Name.Local == "hidden"
			}
			switch n := len(at.rows) - 1; token.Name.Local {
			case "tr":
				at.rows = append(at.rows, nil)
			case "td":
				at.rows[n] = append(at.rows[n], "")
			}
			open = append(open, at)
		case xml.CharData:
			if len(open) == 0 {
				continue
			}
			at := open[len(open)-1]
			at.text += string(token)
			if n := len(at.rows) - 1; n >= 0 && len(at.rows[n]) > 0 {
				at.rows[n][len(at.rows[n])-1] += string(token)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// A browser shows what ls --json and watch --json say: of a holder, of waiters, of a lock that is kept, of
// another language's and of losses. HOLDFAST_PICTURES names a directory for a picture of it.
func TestThePageInABrowser(t *testing.T) {
	d, where := loaded(t)
	pictures, hostile := os.Getenv("HOLDFAST_PICTURES"), "<b>"
	if pictures != "" {
		hostile = ""
	}
	c, other := open(t, d.ClientOption(), client.Config{Label: hostile + "nightly"}), open(t, d.ClientOption(), client.Config{})
	for _, name := range []string{"order:42", "order:43", hostile + "stock:7"} {
		_, err := c.Acquire(t.Context(), name)
		require.NoError(t, err)
	}
	for i := range 3 {
		wait(t, open(t, d.ClientOption(), client.Config{}), "order:42", i+1)
	}
	_, err := other.Once(t.Context(), "report", time.Hour, func(context.Context) error { return nil })
	require.NoError(t, err)
	_, err = d.Nodes()[0].Do(t.Context(), "FCALL", "holdfast_acquire", "1", "lock:import", "web-42:7:python", "600000")
	require.NoError(t, err)
	for _, name := range []string{"cart:1", "cart:2"} {
		_, err := other.Acquire(t.Context(), name)
		require.NoError(t, err)
	}
	url, _ := serving(t, nil, append(where, "ui", "--listen", "127.0.0.1:0", "--every", "50ms")...)
	var look locks.Look
	until := func(stands func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			code, text := get(t, url+"/look")
			look = locks.Look{}
			return code == http.StatusOK && json.Unmarshal([]byte(text), &look) == nil && stands()
		}, soon, pollEvery)
	}
	until(func() bool { return look.Held == 6 && look.Waiting == 3 })
	for _, name := range []string{"cart:1", "cart:2"} {
		r := holdfast(t, nil, append(where, "break", name, "--reason", hostile+"it hangs", "--yes")...)
		require.Equal(t, 0, r.code, r)
	}
	until(func() bool { return len(look.Losses) == 2 })

	shown := parts(t, browse(t, url, "--dump-dom"))
	list := decode[listed](t, holdfast(t, nil, append(where, "ls", "--json", "--sort", "waiters")...))
	require.True(t, strings.HasPrefix(shown["totals"].text, fmt.Sprintf("%d locks: %d held, %d waiting, ", list.Total, list.Held, list.Waiting)),
		shown["totals"].text)
	require.Empty(t, shown["problem"].text)
	require.True(t, shown["ask"].hidden)
	want, kept := [][]string{}, time.Time{}
	for _, l := range list.Locks {
		holder := l.Who.String()
		if l.Kept() {
			holder, kept = "nobody: kept", *l.KeptUntil
		}
		want = append(want, []string{l.Name, holder, fmt.Sprint(l.Token), fmt.Sprint(l.Waiters)})
	}
	require.Len(t, want, 5)
	got := [][]string{}
	for _, row := range shown["locks"].rows {
		require.Regexp(t, `^(-|[0-9.]+m?s|\d+m\d\ds)$`, row[2])
		require.Regexp(t, `^([0-9.]+s|\d+m\d\ds)$`, row[3])
		if nobody, at, until := strings.Cut(row[1], " until "); until { // two looks may round to two seconds
			shown, err := time.Parse(time.RFC3339, at)
			require.NoError(t, err)
			require.WithinDuration(t, kept, shown, 2*time.Second)
			row[1] = nobody
		}
		got = append(got, []string{row[0], row[1], row[4], row[5]})
	}
	require.Equal(t, want, got)
	want, got = nil, nil
	for _, l := range look.Losses {
		want = append(want, []string{l.Name, l.Who.String(), fmt.Sprint(l.Token), "broken: " + l.Reason})
	}
	for _, row := range shown["losses"].rows {
		got = append(got, row[1:])
	}
	require.Equal(t, want, got)

	if pictures != "" {
		browse(t, url, "--window-size=900,460", "--screenshot="+filepath.Join(pictures, "ui.png"))
	}

	// Where others can reach it, it asks for the token, and shows nothing before.
	far, _ := serving(t, []string{"HOLDFAST_UI_TOKEN=s3cret"}, append(where, "ui", "--listen", "0.0.0.0:0")...)
	_, port, _ := strings.Cut(strings.TrimPrefix(far, "http://[::]"), ":")
	shown = parts(t, browse(t, "http://127.0.0.1:"+port, "--dump-dom"))
	require.False(t, shown["ask"].hidden)
	require.Empty(t, shown["locks"].rows)

	// A server that is gone has not no locks.
	require.NoError(t, d.Nodes()[0].Kill())
	until(func() bool { return len(look.Errors) > 0 })
	shown = parts(t, browse(t, url, "--dump-dom"))
	require.Contains(t, shown["problem"].text, "not complete: ")
	require.Contains(t, shown["totals"].text, "at least 0 locks: ")
}
