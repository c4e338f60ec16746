// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// world is the servers that the workloads share, started when first needed.
type world struct {
	flavours []server.Flavour
	sites    map[spot]*site
	core     *int // of the servers, if they have one
	quick    bool // short windows
}

// spot says which servers a cell is measured on.
type spot struct {
	server int
	where  server.Kind
}

// flavours are the servers that this machine has as HOLDFAST_RUNTIME and HOLDFAST_SERVERS choose, two at the most.
// Where they choose nothing and it has one, the second one is the first image that is here.
func flavours() (list []server.Flavour, err error) {
	if list, err = server.Flavours(); err != nil {
		return nil, err
	}
	if os.Getenv("HOLDFAST_RUNTIME")+os.Getenv("HOLDFAST_SERVERS") == "" {
		for _, image := range []string{"valkey/valkey:8", "redis:8", "holdfast-test/valkey:8.1", "holdfast-test/redis:8.0"} {
			if len(list) == 1 && exec.Command("docker", "image", "inspect", image).Run() == nil {
				list = append(list, server.Flavour{Runtime: server.Container, Image: image})
			}
		}
	}
	return list[:min(2, len(list))], nil
}

// site is a deployment of Redis that has the functions of Holdfast.
type site struct {
	*server.Deployment
	place     place
	primaries []rueidis.Client // a connection to each, which is kept: a reading shall cost little
}

// site returns the servers of a cell, emptied.
func (w *world) site(ctx context.Context, c cell) (*site, error) {
	at := spot{c.server, c.where}
	s := w.sites[at]
	if s == nil {
		d, err := server.Start(ctx, server.Spec{Kind: c.where, Servers: 5, Own: true, Flavour: w.flavours[c.server]})
		if err != nil {
			return nil, err
		}
		s = &site{Deployment: d, place: place{Kind: c.where}}
		w.sites[at] = s
		if err := s.prepare(ctx, w.core); err != nil {
			return nil, err
		}
	}
	for _, c := range s.primaries {
		err := c.Do(ctx, c.B().Flushall().Sync().Build()).Error()
		if err == nil && s.place.Kind == server.KindSeveral {
			err = remember(ctx, c)
		}
		if err != nil {
			return nil, fmt.Errorf("empty the database: %w", err)
		}
	}
	return s, nil
}

// prepare loads the functions, gives the servers their core, and connects.
func (s *site) prepare(ctx context.Context, core *int) error {
	if err := s.LoadFunctions(ctx); err != nil {
		return err
	}
	for _, n := range s.Nodes() {
		if core != nil {
			if err := house(n.Addr, *core); err != nil {
				return fmt.Errorf("move %s to core %d: %w", n.Addr, *core, err)
			}
		}
		if n.Role != server.RolePrimary {
			continue
		}
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			return err
		}
		s.primaries, s.place.Addrs = append(s.primaries, c), append(s.place.Addrs, n.Addr)
		if err := c.Do(ctx, c.B().FunctionLoad().Replace().FunctionCode(floorSource).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// remember makes the memory of a server old enough to vote.
func remember(ctx context.Context, c rueidis.Client) error {
	call := func(args ...string) ([]string, error) {
		return c.Do(ctx, c.B().Fcall().Function(functions.Memory).Numkeys(0).Arg(args...).Build()).AsStrSlice()
	}
	memory, err := call()
	if err == nil && len(memory) != 3 {
		err = fmt.Errorf("%s: %v", functions.Memory, memory)
	}
	if err == nil {
		_, err = call(memory[0], memory[1], "1")
	}
	return err
}

// close ends all servers.
func (w *world) close() (err error) {
	for _, s := range w.sites {
		for _, c := range s.primaries {
			c.Close()
		}
		err = errors.Join(err, s.Close())
	}
	return err
}

// account is what the primaries and this process spent since they started, or between two readings.
type account struct {
	at             time.Duration // of the reading
	server, client time.Duration // CPU
	mallocs        uint64
	commands       map[string]spent // by name, those inside scripts and functions too
}

type spent struct{ calls, usec int64 }

var began = time.Now()

// account reads the server first, and last the time.
func (s *site) account(ctx context.Context) (account, error) {
	a := account{commands: map[string]spent{}}
	for _, c := range s.primaries {
		info, err := c.Do(ctx, c.B().Info().Section("cpu", "commandstats").Build()).ToString()
		if err != nil {
			return a, err
		}
		if err := a.parse(info); err != nil {
			return a, err
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return a, err
	}
	a.client = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	a.mallocs, a.at = m.Mallocs, time.Since(began)
	return a, nil
}

// parse adds the sections cpu and commandstats of one primary.
func (a *account) parse(info string) error {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("INFO: %w", err)
			}
			a.server += time.Duration(seconds * float64(time.Second))
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			s := a.commands[command]
			var calls, usec int64
			if _, err := fmt.Sscanf(value, "calls=%d,usec=%d", &calls, &usec); err != nil {
				return fmt.Errorf("INFO: %q: %w", line, err)
			}
			a.commands[command] = spent{s.calls + calls, s.usec + usec}
		}
	}
	return nil
}

func (a account) sub(o account) account {
	d := account{at: a.at - o.at, server: a.server - o.server, client: a.client - o.client, mallocs: a.mallocs - o.mallocs,
		commands: map[string]spent{}}
	for name, s := range a.commands {
		d.commands[name] = spent{s.calls - o.commands[name].calls, s.usec - o.commands[name].usec}
	}
	return d
}

// by is what the servers spent in the commands of a rival.
func (a account) by(r rival) (total spent) {
	for _, name := range r.Sends {
		total.calls += a.commands[name].calls
		total.usec += a.commands[name].usec
	}
	return total
}
