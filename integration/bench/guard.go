package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// guard is the critical section that a lock under test protects. It lies in a file that all
// processes map, and finds a lock that lets two in at once: two that meet inside, or an increment
// that was lost.
type guard struct {
	file  string
	page  []byte
	timed bool // measure the time between holds

	count    *int64 // plain: only the lock protects it
	inside   *int64 // atomic: how many are in
	meetings *int64 // atomic: how often one came in while another was
	// atomic: when the last one left, nanoseconds of the wall clock, which processes share
	left *int64
}

// newGuard makes a guard; the caller must remove it.
func newGuard() (*guard, error) {
	f, err := os.CreateTemp("", "holdfast-bench-guard-")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(os.Getpagesize())); err != nil {
		return nil, err
	}
	return openGuard(f.Name())
}

// openGuard opens the guard that another process made.
func openGuard(name string) (*guard, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	at := func(i int) *int64 { return (*int64)(unsafe.Pointer(&page[64*i])) } // a cache line each
	return &guard{file: name, page: page, count: at(0), inside: at(1), meetings: at(2), left: at(3)}, nil
}

// enter is called with the lock held. It returns for how long nobody was inside, if timed; zero at
// the first time.
func (g *guard) enter() time.Duration {
	if atomic.AddInt64(g.inside, 1) != 1 {
		atomic.AddInt64(g.meetings, 1)
	}
	*g.count++
	if !g.timed {
		return 0
	}
	if left := atomic.LoadInt64(g.left); left != 0 {
		return time.Duration(time.Now().UnixNano() - left)
	}
	return 0
}

// leave is called before the lock is given back.
func (g *guard) leave() {
	if g.timed {
		atomic.StoreInt64(g.left, time.Now().UnixNano())
	}
	atomic.AddInt64(g.inside, -1)
}

// check compares with how often the lock was taken in all.
func (g *guard) check(taken int64) error {
	if n := atomic.LoadInt64(g.meetings); n > 0 {
		return fmt.Errorf("the lock is broken: %d times two were in the critical section", n)
	}
	if *g.count != taken {
		return fmt.Errorf("the lock is broken: taken %d times, counted %d", taken, *g.count)
	}
	return nil
}

func (g *guard) close() { _ = syscall.Munmap(g.page) }

func (g *guard) remove() {
	g.close()
	_ = os.Remove(g.file)
}
