package client

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A dial to a host that does not answer takes rueidis' whole time-out. Close ends it.
func TestCloseEndsDials(t *testing.T) {
	w, dialing := newWires(), make(chan struct{})
	option := rueidis.ClientOption{DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	w.count(&option)
	ended := make(chan error)
	go func() {
		_, err := option.DialCtxFn(context.Background(), "", nil, nil)
		ended <- err
	}()
	<-dialing
	w.close()
	require.ErrorIs(t, <-ended, context.Canceled)
}
