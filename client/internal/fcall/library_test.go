// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/stretchr/testify/require"
)

// loads is how often a server was told to load a library.
func loads(t *testing.T, n *server.Node) string {
	stat := n.Info(t.Context(), "commandstats", "cmdstat_function|load")
	calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
	return calls
}

func TestOneLoadForAll(t *testing.T) {
	s := server.Single(t, server.Owned())
	c := connect(t, s.Addrs()[0], func(cfg *Config) { cfg.AutoLoad = true })
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := c.Do(t.Context(), about(t, Inspect, tracked)); err != nil {
				t.Error(err)
			}
			for _, o := range c.Send(t.Context(), []Call{about(t, Inspect), about(t, Inspect, tracked)}) {
				if o.Err != nil {
					t.Error(o.Err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, "1", loads(t, s.Nodes()[0]))

	// A library that goes at once is not loaded at once.
	_, err := s.Nodes()[0].Do(t.Context(), "FUNCTION", "DELETE", functions.Library)
	require.NoError(t, err)
	looked := c.library.began
	err = second(c.Do(t.Context(), about(t, Inspect)))
	if c.library.began.Equal(looked) { // else a slow machine has made the pause
		require.ErrorIs(t, err, ErrUnreachable)
		require.NotErrorIs(t, err, ErrInvalid)
		require.Equal(t, "1", loads(t, s.Nodes()[0]))
	}
	c.library.began = c.library.began.Add(-lookPause)
	require.NoError(t, second(c.Do(t.Context(), about(t, Inspect))))
	require.Equal(t, "2", loads(t, s.Nodes()[0]))
}

func TestWhatIsWrongWithTheLibrary(t *testing.T) {
	const denied = "user default on nopass ~* &* +@all -function|load"
	library := func(version string) string {
		return "#!lua name=holdfast\nredis.register_function{function_name = 'holdfast_version', callback = function() return '" + version + "' end, " +
			"flags = {'no-writes'}}\nredis.register_function('holdfast_acquire', function() return redis.error_reply('HFARG ttl_ms') end)\n" +
			"redis.register_function('holdfast_renew', function() return {1, 77, 3000, 1, 1} end)"
	}
	for name, c := range map[string]struct {
		library  string
		autoLoad bool
		acl      string
		want     []string
		kinds    []error
		not      error
	}{
		"missing":        {"", false, "", []string{"run: holdfast load --addr ADDR"}, []error{ErrLibrary, ErrInvalid}, ErrUnreachable},
		"may not load":   {"", true, denied, []string{"loading it at ADDR failed", "function|load"}, []error{ErrLibrary, ErrDenied}, ErrUnreachable},
		"older":          {library("1.0.0"), true, "", []string{"version 1.0.0", "needs 2", "library is too old", "load --force --addr ADDR"}, []error{ErrLibrary}, ErrArgument},
		"without one":    {library("2.0.0-0"), true, "", []string{"run: holdfast load --addr ADDR"}, []error{ErrLibrary}, ErrUnreachable},
		"newer":          {library("3.1.0"), false, "", []string{"version 3.1.0", "client is too old; run: go get"}, []error{ErrLibrary}, ErrArgument},
		"broken by hand": {library(functions.Version), false, "", []string{"run: holdfast load --addr ADDR"}, []error{ErrLibrary}, ErrUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			options := []server.Option{server.Owned()}
			if c.acl != "" {
				options = append(options, server.WithACL(c.acl))
			}
			s := server.Single(t, options...)
			if c.library != "" {
				_, err := s.Nodes()[0].Do(t.Context(), "FUNCTION", "LOAD", c.library)
				require.NoError(t, err)
			}
			caller := connect(t, s.Addrs()[0], func(cfg *Config) { cfg.AutoLoad = c.autoLoad })
			sent := caller.Send(t.Context(), []Call{about(t, Inspect), about(t, Renew)})
			errs := []error{second(caller.Do(t.Context(), about(t, Inspect))), second(caller.Do(t.Context(), about(t, Renew))), sent[0].Err, sent[1].Err}
			if c.not == ErrArgument { // a word in a place that means another thing there
				errs = append(errs, second(caller.Do(t.Context(), about(t, Acquire))))
			}
			for _, err := range errs {
				for _, kind := range c.kinds {
					require.ErrorIs(t, err, kind)
				}
				require.NotErrorIs(t, err, c.not)
				for _, part := range c.want {
					require.ErrorContains(t, err, strings.Replace(part, "ADDR", s.Addrs()[0], 1))
				}
			}
		})
	}
}

// A server that is gone is no reason to load: and whoever waits for a load leaves with its context.
func TestHealEnds(t *testing.T) {
	proxy := server.NewProxy(t, server.Single(t, server.Owned()).Addrs()[0])
	c := connect(t, proxy.Addr, func(cfg *Config) { cfg.AutoLoad = true })
	require.False(t, c.Heal(t.Context(), Classify(t.Context(), errors.New("EOF"))))
	proxy.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.False(t, c.Heal(ctx, Classify(ctx, refusal("ERR Function not found"))))
	proxy.Resume()
	require.True(t, c.Heal(t.Context(), Classify(t.Context(), refusal("ERR Function not found"))))
	require.NoError(t, second(c.Do(t.Context(), about(t, Inspect))))
}
