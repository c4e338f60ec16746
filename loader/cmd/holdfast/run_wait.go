package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/supervise"
)

// interrupted is the cause of a wait that a signal ended.
type interrupted struct{ os.Signal }

func (i interrupted) Error() string { return "interrupted: " + i.String() }

// interruptible lets signals end the wait, until the returned function is called. Signals that come
// after that are left in the channel.
func (j *job) interruptible() (quiet func()) {
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-j.signals:
				if supervise.Ends(s) {
					j.stop(interrupted{s})
				}
			case <-enough:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(enough); <-ended })
}

const lookWithin = 2 * time.Second

// holder says who has the lock. The server knows since when; the error has an answer too.
func (j *job) holder(ctx context.Context, c *client.Client, err error) string {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if info, failed := c.Inspect(ctx, j.name); failed == nil && info.Held {
		return fmt.Sprintf("%s: %s, %d waiting", printable(j.name), holderText(info.Holder), info.Waiters)
	}
	return text(err)
}

func holderText(h client.Holder) string {
	if h.Owner == "" {
		return "nobody gets it yet"
	}
	text := h.String() + " has it"
	if !h.Since.IsZero() {
		text += fmt.Sprintf(" since %s (%s)", h.Since.UTC().Format(time.DateTime+" UTC"), short(time.Since(h.Since)))
	}
	return text
}

// clientError adds what can be done about it.
func (j *job) clientError(err error) error {
	switch {
	case errors.Is(err, client.ErrLibrary):
		return fmt.Errorf("%w (\"holdfast load\" brings the library)", err)
	case errors.Is(err, client.ErrDenied):
		return fmt.Errorf("%w (\"holdfast acl --for client\" prints the rights that it takes)", err)
	}
	return err
}
