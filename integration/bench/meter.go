package main

import (
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// effort is what this process spent.
type effort struct {
	CPU     time.Duration
	Mallocs uint64
	Bytes   uint64
}

// effortNow is what this process spent since it started.
func effortNow() effort {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return effort{CPU: cpuNow(), Mallocs: m.Mallocs, Bytes: m.TotalAlloc}
}

func cpuNow() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (e effort) sub(o effort) effort {
	return effort{e.CPU - o.CPU, e.Mallocs - o.Mallocs, e.Bytes - o.Bytes}
}

func (e effort) add(o effort) effort {
	return effort{e.CPU + o.CPU, e.Mallocs + o.Mallocs, e.Bytes + o.Bytes}
}

// account is what the primaries did since they started.
type account struct {
	CPU   time.Duration
	Calls map[string]int64 // by command, those inside scripts and functions too
	Nodes []int64          // calls by primary
}

func (a account) sub(o account) account {
	d := account{CPU: a.CPU - o.CPU, Calls: map[string]int64{}}
	for name, n := range a.Calls {
		if n > o.Calls[name] {
			d.Calls[name] = n - o.Calls[name]
		}
	}
	for i, n := range a.Nodes {
		d.Nodes = append(d.Nodes, n-o.Nodes[i])
	}
	return d
}

// housekeeping are commands of connections and of this program.
var housekeeping = []string{"info", "hello", "ping", "select", "echo", "auth", "monitor", "flushall", "dbsize", "command",
	"function", "script", "config", "cluster", "role", "readonly", "subscribe", "unsubscribe", "exists", "publish", "replconf",
	"psync", "sync", "quit", "reset"}

// split counts the commands that a rival sent, and those that ran inside its scripts and functions.
func (a account) split(r rival) (sent, inside int64) {
	for name, n := range a.Calls {
		family, _, _ := strings.Cut(name, "|")
		switch {
		case slices.Contains(r.Sends, name):
			sent += n
		case family == "client" || slices.Contains(housekeeping, family):
		default:
			inside += n
		}
	}
	return sent, inside
}
