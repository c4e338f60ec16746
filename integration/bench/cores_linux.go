// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

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

// house moves the server of an address to a core. Which process that is says its title: a server in a container
// is no child of ours, and does not know its number here.
func house(addr string, core int) error {
	var set unix.CPUSet
	set.Set(core)
	_, port, _ := strings.Cut(addr, ":")
	titles, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, title := range titles {
		text, _ := os.ReadFile(title) // it may have ended
		if found, _ := regexp.Match(`-server \S*:`+port+`\b`, text); !found {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(title, "/")[2])
		if err != nil {
			return err
		}
		return pin(pid, set)
	}
	return errors.Join(err, errors.New("no process says that it serves it"))
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
