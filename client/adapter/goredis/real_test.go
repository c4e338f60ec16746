// SPDX-License-Identifier: Apache-2.0

package holdfastgoredis_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoredis "github.com/holdfast-go/holdfast/client/adapter/goredis"
	"github.com/holdfast-go/holdfast/integration/server"
)

// sees fails the test unless a lock that is taken with option is a key that the go-redis client sees:
// both are on the same server, and in the same database.
func sees(t *testing.T, option rueidis.ClientOption, err error, rdb redis.UniversalClient) *client.Client {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := client.Open(option, client.Config{AutoLoad: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	lock, err := c.Acquire(t.Context(), "order:42")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.Exists(t.Context(), "lock:order:42").Result(); n != 1 || err != nil {
		t.Errorf("go-redis sees %d locks, %v", n, err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	return c
}

func TestOneServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	local := true
	spec := []server.Option{server.Owned(), server.WithACL("user shop on >secret ~* &* +@all")}
	if f, err := server.Default(); err != nil {
		t.Fatal(err)
	} else if local = f.Runtime == server.Local; local {
		spec = append(spec, server.WithConfig("unixsocket", socket))
	}
	d := server.Single(t, spec...)
	options := func() *redis.Options {
		return &redis.Options{Addr: d.Addrs()[0], Username: "shop", Password: "secret", DB: 3, ClientName: "web"}
	}
	t.Run("user, database and name", func(t *testing.T) {
		o := options()
		option, err := holdfastgoredis.Single(o)
		rdb := redis.NewClient(o)
		sees(t, option, err, rdb)
		list, err := rdb.ClientList(t.Context()).Result()
		// Redis 7.0 does not know libraries, so what a connection runs says whose it is.
		ours := 0
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name=web ") && strings.Contains(line, " cmd=fcall") {
				ours++
			}
		}
		if ours == 0 || err != nil {
			t.Errorf("no connection of the lock's has the name: %s, %v", list, err)
		}
	})
	t.Run("options of a client", func(t *testing.T) {
		rdb := redis.NewClient(options())
		option, err := holdfastgoredis.Single(rdb.Options(), holdfastgoredis.WithoutTuning())
		sees(t, option, err, rdb)
	})
	t.Run("RESP2", func(t *testing.T) {
		o := options()
		o.Protocol = 2
		option, err := holdfastgoredis.Single(o)
		sees(t, option, err, redis.NewClient(o))
	})
	t.Run("URL", func(t *testing.T) {
		url := "redis://shop:secret@" + d.Addrs()[0] + "/3?client_name=web&dial_timeout=2s&read_timeout=3s"
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		option, err := holdfastgoredis.Single(o)
		sees(t, option, err, redis.NewClient(o))
	})
	t.Run("credentials provider", func(t *testing.T) {
		o := options()
		o.Username, o.Password = "", ""
		var asked atomic.Int32
		o.CredentialsProvider = func() (string, string) {
			asked.Add(1)
			return "shop", "secret"
		}
		option, err := holdfastgoredis.Single(o)
		o.CredentialsProvider, o.Username, o.Password = nil, "shop", "secret"
		sees(t, option, err, redis.NewClient(o))
		if asked.Load() == 0 {
			t.Error("it is not asked")
		}
	})
	t.Run("dialer", func(t *testing.T) {
		o := options()
		var dialed atomic.Int32
		o.Addr = "somewhere:1"
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialed.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, d.Addrs()[0])
		}
		option, err := holdfastgoredis.Single(o)
		o.Dialer, o.Addr = nil, d.Addrs()[0]
		sees(t, option, err, redis.NewClient(o))
		if dialed.Load() == 0 {
			t.Error("it is not asked")
		}
	})
	t.Run("unix socket", func(t *testing.T) {
		if !local {
			t.Skip("the server is not on this machine, so it has no socket here")
		}
		o := options()
		o.Addr = socket
		option, err := holdfastgoredis.Single(o)
		sees(t, option, err, redis.NewClient(o))
	})
}

func TestUniversalOnEachDeployment(t *testing.T) {
	t.Run("sentinel", func(t *testing.T) {
		d := server.Sentinel(t)
		s := d.ClientOption()
		o := &redis.UniversalOptions{Addrs: s.InitAddress, MasterName: s.Sentinel.MasterSet}
		option, err := holdfastgoredis.Universal(o)
		sees(t, option, err, redis.NewUniversalClient(o))
	})
	t.Run("cluster", func(t *testing.T) {
		d := server.Cluster(t)
		o := &redis.UniversalOptions{Addrs: d.Addrs(), IsClusterMode: true}
		option, err := holdfastgoredis.Universal(o)
		sees(t, option, err, redis.NewUniversalClient(o))
	})
}

// The options are written once, for both clients.
func ExampleUniversal() {
	d, err := server.Start(context.Background(), server.Spec{})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	ctx := context.Background()

	opts := &redis.UniversalOptions{Addrs: d.Addrs(), ClientName: "shop", PoolSize: 50}
	rdb := redis.NewUniversalClient(opts)
	defer rdb.Close()

	_, err = holdfastgoredis.Universal(opts)
	fmt.Println(err)
	option, err := holdfastgoredis.Universal(opts, holdfastgoredis.WithoutTuning())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Open(option, client.Config{AutoLoad: true})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = c.Do(ctx, "order:42", func(ctx context.Context) error {
		return rdb.Set(ctx, "order:42:shipped", client.Fence(ctx) > 0, 0).Err()
	})
	fmt.Println(err)
	// Output:
	// holdfast: goredis: redis.UniversalOptions cannot be mapped: PoolSize
	// <nil>
}
