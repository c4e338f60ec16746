// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A dial to a host that does not answer takes rueidis' whole time-out. Close ends it.
func TestCloseEndsDials(t *testing.T) {
	w, dialing := NewWires(), make(chan struct{})
	option, _ := Adapt(rueidis.ClientOption{DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}}, w, nil)
	ended := make(chan error)
	go func() {
		_, err := option.DialCtxFn(context.Background(), "", nil, nil)
		ended <- err
	}()
	<-dialing
	w.Close()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// pipes are wires whose far ends the test has.
func pipes(t *testing.T) (w *Wires, dial func() (net.Conn, error), far func(i int) net.Conn) {
	var ends []net.Conn
	w = NewWires()
	option, _ := Adapt(rueidis.ClientOption{DialFn: func(string, *net.Dialer, *tls.Config) (net.Conn, error) {
		near, end := net.Pipe()
		ends = append(ends, end)
		return near, nil
	}}, w, nil)
	t.Cleanup(w.Close)
	dial = func() (net.Conn, error) { return option.DialCtxFn(context.Background(), "", nil, nil) }
	return w, dial, func(i int) net.Conn { return ends[i] }
}

// over waits for the end of a connection, seen from its other side.
func over(t *testing.T, far net.Conn) {
	t.Helper()
	_, err := far.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestCloseEndsConnections(t *testing.T) {
	w, dial, far := pipes(t)
	_, err := dial()
	require.NoError(t, err)
	own, err := dial()
	require.NoError(t, err)
	require.NoError(t, own.Close())
	require.Len(t, w.open, 1, "a connection that rueidis closed is forgotten")
	w.Close()
	over(t, far(0))
	_, err = dial()
	require.ErrorIs(t, err, net.ErrClosed)
	over(t, far(2))
}

func TestRenewOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dial, far := pipes(t)
		_, err := dial()
		require.NoError(t, err)
		w.Renew()
		over(t, far(0))
		c, err := dial()
		require.NoError(t, err)
		w.Renew() // the new one leads to a replica too
		read := make(chan error)
		go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
		_, err = far(1).Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, <-read)
		time.Sleep(renewPause)
		w.Renew()
		over(t, far(1))
	})
}

// A primary that cannot be reached makes rueidis dial sentinels without a pause.
func TestSentinelsAreDialedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lookup := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
		option, _ := Adapt(rueidis.ClientOption{DialFn: func(string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, net.ErrClosed
		}, Sentinel: rueidis.SentinelOption{Dialer: net.Dialer{Resolver: &net.Resolver{Dial: lookup}}}}, NewWires(), nil)
		require.NotNil(t, option.Sentinel.Dialer.Resolver.Dial)
		began := time.Now()
		for i, wanted := range []time.Duration{0, 0, sentinelPause, 2 * sentinelPause} {
			_, err := option.DialCtxFn(t.Context(), "a:1", &option.Sentinel.Dialer, nil)
			require.ErrorIs(t, err, net.ErrClosed)
			require.Equal(t, wanted, time.Since(began), i)
			_, err = option.DialCtxFn(t.Context(), "a:1", &option.Dialer, nil) // a node
			require.ErrorIs(t, err, net.ErrClosed)
			require.Equal(t, wanted, time.Since(began), i)
		}
	})
}

func TestAdapt(t *testing.T) {
	redis, err := rueidis.NewClient(server.Single(t).ClientOption())
	require.NoError(t, err)
	defer redis.Close()
	mine := rueidis.ClientOption{PipelineMultiplex: 2, MaxFlushDelay: time.Second, ReadBufferEachConn: 1, WriteBufferEachConn: 2, ConnLifetime: time.Hour,
		Dialer: net.Dialer{Timeout: time.Hour, KeepAlive: time.Minute}, Sentinel: rueidis.SentinelOption{Dialer: net.Dialer{KeepAlive: time.Minute}},
		SendToReplicas: func(rueidis.Completed) bool { return true }, ClusterOption: rueidis.ClusterOption{MaxMovedRedirections: 3, ShardsRefreshInterval: time.Hour}}
	option, caching := Adapt(mine, NewWires(), nil)
	require.True(t, caching)
	require.Equal(t, []string{"OPTIN", "NOLOOP"}, option.ClientTrackingOptions)
	require.Equal(t, 2, option.PipelineMultiplex)
	require.True(t, option.AlwaysPipelining)
	require.Equal(t, time.Second, option.MaxFlushDelay)
	require.Equal(t, []int{1, 2}, []int{option.ReadBufferEachConn, option.WriteBufferEachConn})
	require.Zero(t, option.ConnLifetime)
	require.Equal(t, 3, option.ClusterOption.MaxMovedRedirections)
	require.Equal(t, []time.Duration{time.Hour, time.Minute}, []time.Duration{option.Sentinel.Dialer.Timeout, option.Sentinel.Dialer.KeepAlive})
	require.Equal(t, time.Hour, option.ClusterOption.ShardsRefreshInterval)
	require.Equal(t, 10*time.Second, option.ConnWriteTimeout, "whatever KeepAlive is")
	require.Equal(t, refreshSentinels, option.Sentinel.TopologyRefreshInterval)
	require.False(t, option.SendToReplicas(redis.B().Ssubscribe().Channel("x").Build()))
	require.True(t, option.SendToReplicas(redis.B().Get().Key("x").Build()))
	option, _ = Adapt(rueidis.ClientOption{}, NewWires(), nil)
	require.Equal(t, -1, option.PipelineMultiplex)
	require.Equal(t, flushDelay, option.MaxFlushDelay)
	require.Equal(t, []int{buffer, buffer}, []int{option.ReadBufferEachConn, option.WriteBufferEachConn})
	require.Nil(t, option.SendToReplicas)
	require.Equal(t, redirections, option.ClusterOption.MaxMovedRedirections)
	require.Equal(t, []time.Duration{rueidis.DefaultDialTimeout, rueidis.DefaultTCPKeepAlive},
		[]time.Duration{option.Sentinel.Dialer.Timeout, option.Sentinel.Dialer.KeepAlive})
	for _, without := range []rueidis.ClientOption{{DisableCache: true}, {AlwaysRESP2: true}, {ClientTrackingOptions: []string{"BCAST"}}} {
		option, caching = Adapt(without, NewWires(), nil)
		require.False(t, caching)
		require.Equal(t, without.ClientTrackingOptions, option.ClientTrackingOptions)
	}
}

func TestInvalidationsGoToBoth(t *testing.T) {
	var heard []string
	option, _ := Adapt(rueidis.ClientOption{OnInvalidations: func([]rueidis.RedisMessage) { heard = append(heard, "theirs") }}, NewWires(),
		func([]rueidis.RedisMessage) { heard = append(heard, "ours") })
	option.OnInvalidations(nil)
	require.Equal(t, []string{"ours", "theirs"}, heard)
}

func TestOpenWithoutTracking(t *testing.T) {
	s := server.Single(t, server.WithACL("user default on nopass ~* &* +@all -client|tracking"))
	redis, wires, caching, refused, err := Open(t.Context(), s.ClientOption(), func([]rueidis.RedisMessage) {})
	require.NoError(t, err)
	defer wires.Close()
	defer redis.Close()
	require.False(t, caching)
	require.ErrorContains(t, refused, "client|tracking")
	require.NoError(t, redis.Do(t.Context(), redis.B().Ping().Build()).Error())
}

func TestOpen(t *testing.T) {
	invalidated := make(chan struct{}, 10)
	redis, wires, caching, refused, err := Open(t.Context(), server.Single(t).ClientOption(), func([]rueidis.RedisMessage) { invalidated <- struct{}{} })
	require.NoError(t, err)
	require.NoError(t, refused)
	require.True(t, caching)
	defer redis.Close()
	for _, result := range redis.DoMulti(t.Context(), redis.B().Arbitrary("CLIENT", "CACHING", "YES").Build(), redis.B().Get().Key("x").Build()) {
		require.NoError(t, result.NonRedisError())
	}
	wires.Close() // rueidis tells of the end of a connection as of an invalidation of all
	<-invalidated
	require.Error(t, redis.Do(t.Context(), redis.B().Ping().Build()).Error())
}

// A connection that ends while nobody waits for an answer is noticed, so that the next call has another one.
func TestConnectionsThatEndedAreMadeAnew(t *testing.T) {
	s := server.Single(t, server.Owned())
	option := s.ClientOption()
	option.DisableCache = true
	option.Dialer.KeepAlive = time.Hour // rueidis would notice when it pings
	redis, wires, _, _, err := Open(t.Context(), option, nil)
	require.NoError(t, err)
	defer redis.Close()
	ping := func() error { return redis.Do(context.Background(), redis.B().Ping().Build()).Error() }
	require.NoError(t, ping())
	before := wires.Ended().Load()
	_, err = s.Nodes()[0].Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return wires.Ended().Load() > before }, time.Minute, time.Millisecond)
	// rueidis closes a connection before it takes another one: a call between the two fails.
	require.Eventually(t, func() bool { return ping() == nil }, time.Minute, time.Millisecond)
}

// The host of a primary and of the sentinel that is listened to froze: another sentinel names the new primary.
func TestASentinelThatFellSilentWithItsPrimary(t *testing.T) {
	d := server.Sentinel(t)
	option := d.ClientOption()
	option.Dialer = net.Dialer{Timeout: time.Second, KeepAlive: 100 * time.Millisecond}
	option.ConnWriteTimeout = time.Second
	redis, wires, _, _, err := Open(t.Context(), option, func([]rueidis.RedisMessage) {})
	require.NoError(t, err)
	defer wires.Close()
	defer redis.Close()
	require.NoError(t, d.Nodes()[0].Pause())
	require.NoError(t, d.Sentinels()[0].Pause())
	require.Eventually(t, func() bool {
		return redis.Do(t.Context(), redis.B().Set().Key("x").Value("y").Build()).Error() == nil
	}, time.Minute, time.Millisecond)
}

// The host of a primary froze, and nothing but its replica's promotion tells of it.
func TestAPrimaryOfAClusterThatFellSilent(t *testing.T) {
	d := server.Cluster(t)
	option := d.ClientOption()
	option.Dialer.KeepAlive, option.ConnWriteTimeout = time.Hour, time.Hour
	redis, wires, _, _, err := Open(t.Context(), option, func([]rueidis.RedisMessage) {})
	require.NoError(t, err)
	defer wires.Close()
	defer redis.Close()
	require.NoError(t, d.Nodes()[0].Pause())
	for _, key := range []string{"a", "b", "c", "d"} { // of all primaries
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return redis.Do(ctx, redis.B().Set().Key(key).Value("x").Build()).Error() == nil
		}, time.Minute, time.Millisecond)
	}
}

func TestOpenWithoutAServer(t *testing.T) {
	redis, wires, caching, _, err := Open(t.Context(), rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, nil)
	require.Error(t, err)
	require.Nil(t, redis)
	require.Nil(t, wires)
	require.False(t, caching)
}
