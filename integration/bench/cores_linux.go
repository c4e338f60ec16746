package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// part leaves the first core that this process may use to the servers, and returns its number. When
// both share all cores, each wake-up of a goroutine may cost the server its core for a moment, and
// what is measured is how often a library's client does that.
func part() (core *int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	n := set.Count()
	if n < 2 {
		return nil, errors.New("there is only one")
	}
	first := 0
	for !set.IsSet(first) {
		first++
	}
	set.Clear(first)
	if err := pin(os.Getpid(), set); err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(n - 1)
	return &first, nil
}

// house moves a server to a core.
func house(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	return pin(pid, set)
}

// pin moves all threads of a process; those that they start go with them.
func pin(pid int, set unix.CPUSet) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err == nil && len(threads) == 0 {
		err = fmt.Errorf("no process %d here", pid)
	}
	for _, t := range threads {
		if id, bad := strconv.Atoi(filepath.Base(t)); bad == nil {
			err = errors.Join(err, unix.SchedSetaffinity(id, &set))
		}
	}
	return err
}
