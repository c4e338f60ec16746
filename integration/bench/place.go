package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// place is where the servers are, in a form that a child process can be given.
type place struct {
	Redis   []string // one address, or the nodes of a Cluster
	Cluster bool
	Etcd    string // of one server, or empty
}

// patience is for connecting, while 127 other clients do the same on a machine of two cores.
const patience = time.Minute

// option is what a rueidis client needs to reach the Redis of the place.
func (p place) option() rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: p.Redis, Dialer: net.Dialer{Timeout: patience}}
}

// tunedSettings says what tuned does.
const tunedSettings = "with the connection settings of client.Open: PipelineMultiplex -1, MaxFlushDelay 20 µs"

// tuned is option with what client.Open sets too: it makes rueidis faster with many goroutines.
func (p place) tuned() rueidis.ClientOption {
	option := p.option()
	option.PipelineMultiplex, option.MaxFlushDelay = -1, 20*time.Microsecond
	return option
}

// goRedis opens a go-redis client. Its pool has a connection for each of the 64 goroutines that the
// largest workload of one client has (the default is ten for each core), opened when needed.
func (p place) goRedis() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: p.Redis, IsClusterMode: p.Cluster, PoolSize: 64, DialTimeout: patience})
}

// ask sends one command to the first server, on a connection of its own.
func (p place) ask(ctx context.Context, command ...string) (rueidis.RedisMessage, error) {
	option := p.option()
	option.DisableCache = true
	c, err := rueidis.NewClient(option)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	defer c.Close()
	return c.Do(ctx, c.B().Arbitrary(command...).Build()).ToMessage()
}

// keyEnds is when a plain key expires.
func (p place) keyEnds(ctx context.Context, key string) (time.Time, error) {
	m, err := p.ask(ctx, "PEXPIRETIME", key)
	if err != nil {
		return time.Time{}, err
	}
	ms, err := m.AsInt64()
	if err == nil && ms <= 0 {
		err = fmt.Errorf("the lock's key %s has no end: %d", key, ms)
	}
	return time.UnixMilli(ms), err
}

// fieldEnds is the time that a field of a hash says, in milliseconds.
func (p place) fieldEnds(ctx context.Context, key, field string) (time.Time, error) {
	m, err := p.ask(ctx, "HGET", key, field)
	if err != nil {
		return time.Time{}, err
	}
	text, err := m.ToString()
	if err != nil {
		return time.Time{}, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}
