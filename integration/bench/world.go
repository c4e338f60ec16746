package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	single, several *site
	core            *int // of the servers, if they have one
	quick           bool // short windows
}

// site is a deployment of Redis that has the functions of Holdfast.
type site struct {
	*server.Deployment
	place     place
	primaries []rueidis.Client // a connection to each, which is kept: a reading shall cost little
}

// site returns one server, or five, emptied.
func (w *world) site(ctx context.Context, several bool) (*site, error) {
	at, spec := &w.single, server.Spec{Kind: server.KindSingle, Own: true}
	if several {
		at, spec = &w.several, server.Spec{Kind: server.KindSeveral, Servers: 5, Own: true}
	}
	if *at == nil {
		// A container costs the network a proxy or a bridge, which the numbers should not have.
		if os.Getenv("HOLDFAST_RUNTIME") == "" {
			if err := os.Setenv("HOLDFAST_RUNTIME", string(server.Local)); err != nil {
				return nil, err
			}
		}
		d, err := server.Start(ctx, spec)
		if err != nil {
			return nil, err
		}
		*at = &site{Deployment: d, place: place{Several: several}}
		if err := (*at).prepare(ctx, w.core); err != nil {
			return nil, err
		}
	}
	s := *at
	for _, c := range s.primaries {
		err := c.Do(ctx, c.B().Flushall().Sync().Build()).Error()
		if err == nil && s.place.Several {
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
		if core == nil {
			break
		}
		pid, err := strconv.Atoi(n.Info(ctx, "server", "process_id"))
		if err != nil {
			return fmt.Errorf("INFO of %s names no process: %w", n.Addr, err)
		}
		if err := house(pid, *core); err != nil {
			return fmt.Errorf("move %s to core %d %w", n.Addr, *core, err)
		}
	}
	for _, n := range s.Nodes() {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			return err
		}
		s.primaries, s.place.Addrs = append(s.primaries, c), append(s.place.Addrs, n.Addr)
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
	for _, s := range []*site{w.single, w.several} {
		if s == nil {
			continue
		}
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
	mallocs, bytes uint64
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
	a.mallocs, a.bytes, a.at = m.Mallocs, m.TotalAlloc, time.Since(began)
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
	d := account{at: a.at - o.at, server: a.server - o.server, client: a.client - o.client, mallocs: a.mallocs - o.mallocs, bytes: a.bytes - o.bytes,
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
