// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// server shows by HTTP what the last look at the locks saw. Nobody who asks makes it look.
type server struct {
	where
	filter locks.Filter
	every  time.Duration
	listen string
	each   func(locks.Lock)                       // as locks.Series has it
	render func(*locks.Series, locks.Look) []byte // what is shown of a look
	kind   string                                 // of the content
	last   atomic.Pointer[[]byte]                 // what was rendered last
}

// Who holds connections open, without a token too, must not use up the files of this process.
const (
	askWithin    = 10 * time.Second
	answerWithin = 30 * time.Second
	idleFor      = 2 * time.Minute
)

// serve looks and answers until the context ends, which is no failure.
func (a *app) serve(ctx context.Context, s *server, handler http.Handler) error {
	if s.every < leastEvery {
		return usageError{errors.New("--every must be at least " + leastEvery.String())}
	}
	return a.see(ctx, s.where, func(_ context.Context, view *locks.View) error { return a.answers(ctx, view, s, handler) })
}

// listens is the host of an address to serve at.
func listens(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", usageError{fmt.Errorf("--listen: %w", err)}
	}
	return host, nil
}

func (a *app) answers(ctx context.Context, view *locks.View, s *server, handler http.Handler) error {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "holdfast %s: listening on http://%s\n", a.cfg.command, listener.Addr())
	ctx, stop := context.WithCancel(ctx)
	answering := http.Server{Handler: handler, ReadTimeout: askWithin, WriteTimeout: a.cfg.timeout + answerWithin, IdleTimeout: idleFor}
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- answering.Serve(listener)
	}()
	series := &locks.Series{View: view, Within: a.cfg.timeout, Each: s.each}
	series.Run(ctx, s.filter, s.every, func(look locks.Look) bool {
		text := s.render(series, look)
		s.last.Store(&text)
		return true
	})
	_ = answering.Close() // who is answered just now is cut off
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ServeHTTP answers with the last look.
func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	text := s.last.Load()
	if text == nil {
		http.Error(w, "the first look is not over", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", s.kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(*text) // who asked may have gone
}
