package several

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// kinds are the kinds of errors that err is of: the contract says exactly one.
func kinds(err error) (out []string) {
	for name, k := range map[string]error{"busy": client.ErrBusy, "timeout": client.ErrTimeout, "unreachable": client.ErrUnreachable,
		"closed": client.ErrClosed, "lost": client.ErrLost, "invalid": client.ErrInvalid, "canceled": context.Canceled} {
		if errors.Is(err, k) {
			out = append(out, name)
		}
	}
	return out
}

// quick runs f and complains if it takes longer than most.
func (b *bed) quick(what string, most time.Duration, f func()) {
	b.Helper()
	began := time.Now()
	f()
	if d := time.Since(began); d > most {
		b.Errorf("%s took %v, more than %v", what, d, most)
	}
}

// aliasDial dials a server whatever name it is called by.
func aliasDial(h *redis.Host, addr string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, _ string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		return h.Dial(ctx, addr, d, c)
	}
}
