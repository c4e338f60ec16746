// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

const (
	uiListen = "127.0.0.1:9472"
	uiToken  = "HOLDFAST_UI_TOKEN"
)

//go:embed ui
var uiFiles embed.FS

func uiCommand(a *app) *cobra.Command {
	s := &server{kind: "application/json"}
	s.render = func(_ *locks.Series, look locks.Look) []byte {
		text, _ := json.Marshal(look) // texts and numbers can be encoded
		return text
	}
	cmd := &cobra.Command{
		Use:     "ui [PATTERN]",
		GroupID: groupLocks,
		Short:   "Serve a page that shows what watch shows; nothing can be changed there",
		Long: `Ui serves one page, on this machine only, that shows the locks live: who has them, how many wait, the last losses. It
looks once for all who look at the page, as watch does, and at /look has the JSON of "watch --json". It only reads.

With a token in $HOLDFAST_UI_TOKEN the page asks for that. At an address that others can reach it
always asks for one: if there is none, a random one is made, and printed. The page is served without
TLS: put a proxy that has it in front, if others are to see it.

The user needs what "holdfast acl --for operator" prints.`,
		Example: `  holdfast ui --addr redis-1:6379
  HOLDFAST_UI_TOKEN=... holdfast ui 'order:*' --listen :9472`,
		Args:              atMost(1),
		ValidArgsFunction: a.completeName(&s.where),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choose(&s.filter, args); err != nil {
				return err
			}
			s.filter.Order = cmp.Or(s.filter.Order, locks.ByWaiters)
			handler, err := a.page(s)
			if err != nil {
				return err
			}
			return a.serve(cmd.Context(), s, handler)
		},
	}
	flags := cmd.Flags()
	s.where.bind(flags)
	bindFilter(cmd, &s.filter)
	flags.StringVar(&s.listen, "listen", uiListen, "`address` to serve at")
	flags.DurationVar(&s.every, "every", defaultEvery, "the `pause` between two looks, which is longer if looks are")
	return cmd
}

// page has the files for everybody, and the look for who may see it.
func (a *app) page(s *server) (http.Handler, error) {
	host, err := listens(s.listen)
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(os.Getenv(uiToken)) // a header has no blanks at its ends
	if token == "" && !loopback(host) {
		token = rand.Text()
		fmt.Fprintf(a.stderr, "holdfast ui: the token is %s\n", token)
	}
	files, _ := fs.Sub(uiFiles, "ui") // it is there: embedded
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /look", func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if token != "" && subtle.ConstantTimeCompare([]byte(given), []byte("Bearer "+token)) != 1 {
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page of elsewhere could give its own name this machine's address, and read what is here.
		if host := (&url.URL{Host: r.Host}).Hostname(); token == "" && !loopback(host) {
			http.Error(w, "name this machine by localhost or 127.0.0.1", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	}), nil
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
