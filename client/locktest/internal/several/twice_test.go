package several

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
)

// A server that has two names has no second vote, also where it cannot say at first which server it
// is. The log says what is wrong.
func TestAServerWithTwoNamesHasOneVote(t *testing.T) {
	on(t, 5, func(b *bed) {
		options := b.options("h")
		dial := options[3].DialCtxFn
		options[4] = rueidis.ClientOption{InitAddress: []string{"alias:6379"}, ForceSingleClient: true, MaxFlushDelay: -1,
			DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
				return dial(ctx, b.nodes[3].Addr(), d, cfg)
			}}
		b.nodes[3].Refuse(func(cmd []string) redis.Error {
			if cmd[0] == "INFO" {
				return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
			}
			return ""
		})
		var log lines
		c, err := quorum.Open(options, client.Config{Lease: lease, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(b, err)
		defer c.Close()
		time.Sleep(time.Second)
		b.nodes[3].Refuse(nil)
		time.Sleep(time.Minute)
		assert.Contains(b, log.String(), "two of the servers are one")
		l, err := c.TryAcquire(b.Context(), "x")
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
		b.nodes[0].Kill()
		b.nodes[1].Kill()
		_, err = c.TryAcquire(b.Context(), "x")
		assert.ErrorIs(b, err, client.ErrUnreachable, "two of five servers are left")
	})
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
