package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// move runs this program again, on the cores of a role.
func move(role, place string) error {
	var mine, theirs unix.CPUSet
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		return err
	}
	_, first, parted := strings.Cut(place, ":")
	core, _ := strconv.Atoi(first)
	if !parted {
		if mine.Count() < 2 {
			return errors.New("there is only one")
		}
		for core = 0; !mine.IsSet(core); core++ {
		}
	}
	mine.Clear(core)
	if role == serversRole {
		theirs.Set(core)
		mine = theirs
	}
	if err := unix.SchedSetaffinity(0, &mine); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(coresEnv, fmt.Sprintf("%s:%d", role, core)); err != nil {
		return err
	}
	// the threads of a process take after the one that called exec
	return syscall.Exec(self, os.Args, os.Environ())
}

// pin moves all threads of a process to one core.
func pin(pid, core int) error {
	var set unix.CPUSet
	set.Set(core)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return err
	}
	if len(threads) == 0 {
		return fmt.Errorf("no process %d here", pid)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return err
		}
	}
	return nil
}
