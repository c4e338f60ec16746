package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/redis/rueidis"
)

func TestMain(m *testing.M) { os.Exit(leaks.Check(m.Run())) }

// Clients lock over TCP, and the server ends with its context, whether they are still there or not.
func TestItServesLocks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l, w) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(line)

	a, b := open(t, addr), open(t, addr)
	lock, err := a.Acquire(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryAcquire(ctx, "x"); !errors.Is(err, client.ErrBusy) {
		t.Errorf("a lock that is held: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		next, err := b.Acquire(ctx, "x")
		if err == nil {
			err = next.Release(ctx)
		}
		got <- err
	}()
	for waiting := 0; waiting == 0; {
		info, err := a.Inspect(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		waiting = info.Waiters
	}
	if err := lock.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("it still listens")
	}
}

func open(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
