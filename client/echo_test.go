package client_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// lateNews is a connection on which the news of a break takes longer than any answer does.
type lateNews struct{ net.Conn }

func (c lateNews) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], []byte("broken ")) {
		time.Sleep(5 * time.Millisecond) // the latency, nothing is waited for
	}
	return n, err
}

// With RESP2 messages have a connection of their own, so an answer can overtake the news of the
// break that it shows.
func TestTheReasonOfABreakIsNotOvertaken(t *testing.T) {
	c, err := client.Open(rueidis.ClientOption{
		InitAddress: []string{address}, AlwaysRESP2: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", addr)
			return lateNews{conn}, err
		},
	}, client.Config{})
	require.NoError(t, err)
	defer c.Close()
	l := renewedOnce(t, c, t.Name())
	_, err = opened(t).Break(background, t.Name(), "runaway")
	require.NoError(t, err)
	var lost *client.LostError
	require.ErrorAs(t, l.Renew(background), &lost)
	require.ErrorIs(t, lost, client.ErrBroken)
	require.Contains(t, lost.Reason, "runaway")
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrBroken)
}
