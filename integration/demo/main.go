// Command demo is a flash sale on a real server, by several processes: first
// without a lock, which oversells, then with Holdfast, which does not; also
// when a process is killed while it holds the lock, and when one is paused, and
// comes back to write what is long out of date. "make demo" runs it.
//
// It ends with a table and with what it claims, each claim checked: the exit
// status is 0 only if all of them are true.
//
// The server is the one at HOLDFAST_REDIS, or one that is started for the demo
// and removed afterwards: see package server. At HOLDFAST_REDIS it leaves
// nothing behind but the functions library.
//
// Where to read: buyer.go is what a shop would write, with shop.go as its
// database; sale.go starts the processes, and kills and pauses one of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// size is how big the sales are.
type size struct {
	Stock     int           // how many there are to sell
	Buyers    int           // how many want one
	Processes int           // that serve them, besides the one that is killed or paused
	Lease     time.Duration // of the lock
}

func main() {
	reexec.Main(map[string]reexec.Role{workerRole: work})
	var s size
	flag.IntVar(&s.Stock, "stock", 600, "items to sell")
	flag.IntVar(&s.Buyers, "buyers", 900, "people who want one")
	flag.IntVar(&s.Processes, "processes", 6, "processes that serve them")
	flag.DurationVar(&s.Lease, "lease", time.Second, "lease of the lock")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, newDisplay(os.Stdout))
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(130)
	case errors.Is(err, errClaim):
		os.Exit(1) // the display has said which
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func (s size) check() error {
	switch {
	case s.Processes < 2:
		return errors.New("at least 2 processes are needed")
	case s.Stock < 4*s.Processes*tills:
		// The one that is killed or paused waits in line behind all the others, and they must have
		// enough to sell till then.
		return fmt.Errorf("%d processes need a stock of at least %d", s.Processes, 4*s.Processes*tills)
	case s.Buyers < s.Stock*5/4:
		return fmt.Errorf("a flash sale of %d has more buyers than that: at least %d", s.Stock, s.Stock*5/4)
	case s.Lease < 100*time.Millisecond:
		return errors.New("the lease must be at least 100ms")
	}
	return nil
}
