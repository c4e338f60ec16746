// SPDX-License-Identifier: Apache-2.0

package holdfastgoredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/go-redis/v9/push"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoredis "github.com/holdfast-go/holdfast/client/adapter/goredis"
)

// kind is a type of options: one that is mapped without an error, and how.
type kind struct {
	base   func() any
	option func(o any, opts ...holdfastgoredis.Option) (rueidis.ClientOption, error)
	// what is refused although it is not the inside of a client
	refused []string
}

var kinds = map[string]kind{
	"Single": {
		func() any { return &redis.Options{} },
		func(o any, opts ...holdfastgoredis.Option) (rueidis.ClientOption, error) {
			return holdfastgoredis.Single(o.(*redis.Options), opts...)
		},
		[]string{"OnConnect", "StreamingCredentialsProvider"},
	},
	"Cluster": {
		func() any { return &redis.ClusterOptions{Addrs: []string{"a:1"}} },
		func(o any, opts ...holdfastgoredis.Option) (rueidis.ClientOption, error) {
			return holdfastgoredis.Cluster(o.(*redis.ClusterOptions), opts...)
		},
		[]string{"OnConnect", "StreamingCredentialsProvider", "NewClient", "ClusterSlots"},
	},
	"Failover": {
		func() any { return &redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"a:1"}} },
		func(o any, opts ...holdfastgoredis.Option) (rueidis.ClientOption, error) {
			return holdfastgoredis.Failover(o.(*redis.FailoverOptions), opts...)
		},
		[]string{"OnConnect", "StreamingCredentialsProvider", "CredentialsProvider", "CredentialsProviderContext"},
	},
	"Universal, single": {
		func() any { return &redis.UniversalOptions{} }, universal,
		// and what makes it one of the others, in tests of their own
		[]string{"OnConnect", "StreamingCredentialsProvider", "SentinelUsername", "SentinelPassword"},
	},
	"Universal, cluster": {
		func() any { return &redis.UniversalOptions{Addrs: []string{"a:1", "b:1"}} }, universal,
		[]string{"OnConnect", "StreamingCredentialsProvider", "SentinelUsername", "SentinelPassword", "DB"},
	},
	"Universal, failover": {
		func() any { return &redis.UniversalOptions{MasterName: "m", Addrs: []string{"a:1"}} }, universal,
		[]string{"OnConnect", "StreamingCredentialsProvider", "CredentialsProvider", "CredentialsProviderContext"},
	},
}

func universal(o any, opts ...holdfastgoredis.Option) (rueidis.ClientOption, error) {
	return holdfastgoredis.Universal(o.(*redis.UniversalOptions), opts...)
}

// without an effect: go-redis drops them, or Holdfast's client always has them
var idle = []string{"ContextTimeoutEnabled", "UnstableResp3"}

// set makes a field something that it is not by default.
func set(t *testing.T, f reflect.Value, name string) {
	switch v := f.Addr().Interface().(type) {
	case *redis.Limiter:
		*v = struct{ redis.Limiter }{}
	case *auth.StreamingCredentialsProvider:
		*v = struct {
			auth.StreamingCredentialsProvider
		}{}
	case *push.NotificationProcessor:
		*v = struct{ push.NotificationProcessor }{}
	case *redis.Cache:
		*v = struct{ redis.Cache }{}
	case *time.Duration:
		*v = 7 * time.Second
	case *[]string:
		*v = []string{"x:9"}
	default:
		switch f.Kind() {
		case reflect.String:
			f.SetString("x")
			if name == "Network" {
				f.SetString("unix")
			}
		case reflect.Int:
			f.SetInt(2)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { panic("not called") }))
		case reflect.Interface: // of a package that cannot be imported: any value that fits
			if name != "ShardPicker" {
				t.Fatalf("the test cannot set %s %s", name, f.Type())
			}
			o := &redis.ClusterOptions{Addrs: []string{"a:1"}}
			c := redis.NewClusterClient(o) // makes the default
			defer c.Close()
			f.Set(reflect.ValueOf(c.Options().ShardPicker))
		default:
			t.Fatalf("the test cannot set %s %s", name, f.Type())
		}
	}
}

// Every option of go-redis is mapped, or an error that names it. None is dropped, and none has been
// forgotten: one that a newer go-redis has is found here.
func TestEveryOption(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			base, err := k.option(k.base())
			if err != nil {
				t.Fatal(err)
			}
			typ := reflect.TypeOf(k.base()).Elem()
			seen := 0
			for i := range typ.NumField() {
				field := typ.Field(i).Name
				if !typ.Field(i).IsExported() {
					continue
				}
				if typ == reflect.TypeFor[redis.UniversalOptions]() &&
					slices.Contains([]string{"Addrs", "MasterName", "IsClusterMode"}, field) {
					continue // TestUniversalChooses
				}
				o := k.base()
				set(t, reflect.ValueOf(o).Elem().Field(i), field)
				base := base
				if strings.HasSuffix(field, "Username") && !slices.Contains(k.refused, field) { // without an effect but with its password
					password := strings.Replace(field, "Username", "Password", 1)
					with := k.base()
					for _, o := range []any{o, with} {
						set(t, reflect.ValueOf(o).Elem().FieldByName(password), password)
					}
					base, _ = k.option(with)
				}
				option, err := k.option(o)
				var unmapped *holdfastgoredis.UnmappedError
				if errors.As(err, &unmapped) {
					seen++
					if !errors.Is(err, client.ErrArgument) || len(unmapped.Options) != 1 || unmapped.Options[0] != field {
						t.Errorf("%s: %v", field, err)
					}
					_, err := k.option(o, holdfastgoredis.WithoutTuning())
					if refused := slices.Contains(k.refused, field); refused != (err != nil) {
						t.Errorf("%s without tuning: %v", field, err)
					}
					if field == "CredentialsProvider" || field == "CredentialsProviderContext" {
						continue
					}
					if _, err := k.option(o, holdfastgoredis.Without(field)); err != nil {
						t.Errorf("%s left out: %v", field, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", field, err)
				}
				dropped := fmt.Sprintf("%#v", option) == fmt.Sprintf("%#v", base)
				if dropped != slices.Contains(idle, field) {
					t.Errorf("%s: dropped: %v", field, dropped)
				}
			}
			if seen < 20 {
				t.Errorf("only %d options are refused", seen)
			}
		})
	}
}

func TestAllUnmappedOptionsAreNamed(t *testing.T) {
	_, err := holdfastgoredis.Single(&redis.Options{PoolSize: 5, MaxRetries: 2, Password: "secret"})
	const want = "holdfast: goredis: redis.Options cannot be mapped: MaxRetries, PoolSize"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

// NewClusterClient writes its defaults into the options: they are mapped after it too.
func TestOptionsOfAClusterClient(t *testing.T) {
	o := &redis.ClusterOptions{Addrs: []string{"a:1"}}
	rdb := redis.NewClusterClient(o)
	defer rdb.Close()
	if _, err := holdfastgoredis.Cluster(o, holdfastgoredis.WithoutTuning()); err != nil {
		t.Error(err)
	}
}

func TestUniversalChooses(t *testing.T) {
	several, sentinels := []string{"a:1", "b:1"}, []string{"s:1"}
	for name, test := range map[string]struct {
		o    redis.UniversalOptions
		want rueidis.ClientOption
	}{
		"nothing": {
			redis.UniversalOptions{},
			rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}, ForceSingleClient: true},
		},
		"one address": {
			redis.UniversalOptions{Addrs: []string{"a:1"}, DB: 3},
			rueidis.ClientOption{InitAddress: []string{"a:1"}, ForceSingleClient: true, SelectDB: 3},
		},
		"several": {
			redis.UniversalOptions{Addrs: several},
			rueidis.ClientOption{InitAddress: several},
		},
		"cluster": {
			redis.UniversalOptions{Addrs: []string{"a:1"}, IsClusterMode: true},
			rueidis.ClientOption{InitAddress: []string{"a:1"}},
		},
		"sentinel": {
			redis.UniversalOptions{Addrs: sentinels, MasterName: "m", SentinelPassword: "s", IsClusterMode: true},
			rueidis.ClientOption{InitAddress: sentinels, Sentinel: rueidis.SentinelOption{MasterSet: "m", Password: "s"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := fmt.Sprintf("%+v", test.o)
			got, err := holdfastgoredis.Universal(&test.o)
			if err != nil {
				t.Fatal(err)
			}
			w := test.want
			if !slices.Equal(got.InitAddress, w.InitAddress) || got.ForceSingleClient != w.ForceSingleClient ||
				got.SelectDB != w.SelectDB || got.Sentinel.MasterSet != w.Sentinel.MasterSet ||
				got.Sentinel.Password != w.Sentinel.Password {
				t.Errorf("got %+v", got)
			}
			if after := fmt.Sprintf("%+v", test.o); after != given {
				t.Errorf("the options were %s and are %s", given, after)
			}
		})
	}
}

func TestValuesThatCannotBeMapped(t *testing.T) {
	for name, o := range map[string]*redis.Options{
		"nil": nil, "DialTimeout": {DialTimeout: -1}, "ReadTimeout": {ReadTimeout: -1},
		"WriteTimeout": {WriteTimeout: -2}, "Protocol": {Protocol: 4}, "failover": {Addr: "FailoverClient"},
	} {
		if _, err := holdfastgoredis.Single(o); !errors.Is(err, client.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]*redis.FailoverOptions{
		"nil": nil, "no master": {SentinelAddrs: []string{"a:1"}}, "no sentinel": {MasterName: "m"},
	} {
		if _, err := holdfastgoredis.Failover(o); !errors.Is(err, client.ErrArgument) {
			t.Errorf("failover, %s: %v", name, err)
		}
	}
	if _, err := holdfastgoredis.Cluster(&redis.ClusterOptions{}); !errors.Is(err, client.ErrArgument) {
		t.Errorf("cluster: %v", err)
	}
	for _, err := range []error{second(holdfastgoredis.Cluster(nil)), second(holdfastgoredis.Universal(nil))} {
		if !errors.Is(err, client.ErrArgument) {
			t.Errorf("nil: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The sentinels have credentials of their own, and TLS, the name and the time-out of the primary.
func TestSentinelsHaveTheirOwnCredentials(t *testing.T) {
	cfg := &tls.Config{ServerName: "redis"}
	o, err := holdfastgoredis.Failover(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"a:1", "b:1"}, Username: "u", Password: "p", ClientName: "shop",
		SentinelUsername: "su", SentinelPassword: "sp", TLSConfig: cfg, DialTimeout: time.Second,
	})
	s := o.Sentinel
	if err != nil || o.Username != "u" || o.Password != "p" || s.Username != "su" || s.Password != "sp" ||
		s.ClientName != "shop" || s.TLSConfig != cfg || s.Dialer.Timeout != time.Second {
		t.Errorf("%+v, %v", o, err)
	}
}

// go-redis sends no AUTH for a user without a password, and no SELECT for a DB below 0.
func TestWhatGoRedisDoesNotSend(t *testing.T) {
	single, err := holdfastgoredis.Single(&redis.Options{Username: "u", DB: -1})
	if err != nil || single.Username != "" || single.SelectDB != 0 {
		t.Errorf("%+v, %v", single, err)
	}
	failover, err := holdfastgoredis.Failover(&redis.FailoverOptions{
		MasterName: "m", SentinelAddrs: []string{"a:1"}, Username: "u", SentinelUsername: "su", DB: -1,
	})
	if err != nil || failover.Username != "" || failover.Sentinel.Username != "" || failover.SelectDB != 0 {
		t.Errorf("%+v, %v", failover, err)
	}
	asked, err := holdfastgoredis.Single(&redis.Options{CredentialsProvider: func() (string, string) { return "u", "" }})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := asked.AuthCredentialsFn(rueidis.AuthCredentialsContext{}); err != nil || got.Username != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A provider that takes a context is asked, and not the other one, as by go-redis. Its error goes up.
func TestCredentialsProviders(t *testing.T) {
	refused := errors.New("no token")
	o, err := holdfastgoredis.Single(&redis.Options{
		CredentialsProvider: func() (string, string) { return "old", "old" },
		CredentialsProviderContext: func(ctx context.Context) (string, string, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("no deadline")
			}
			return "new", "token", refused
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.AuthCredentialsFn(rueidis.AuthCredentialsContext{})
	if got.Username != "new" || got.Password != "token" || !errors.Is(err, refused) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A Dialer is given the network and the address, and has DialTimeout.
func TestDialer(t *testing.T) {
	refused := errors.New("no route")
	o, err := holdfastgoredis.Single(&redis.Options{
		Addr: "redis:6379", DialTimeout: time.Minute, TLSConfig: &tls.Config{ServerName: "redis"},
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			d, _ := ctx.Deadline()
			left := time.Until(d)
			if network != "tcp" || addr != "redis:6379" || left < 50*time.Second || left > time.Minute {
				t.Errorf("asked for %s %s, within %v", network, addr, left)
			}
			return nil, refused
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.DialCtxFn(t.Context(), "redis:6379", &o.Dialer, o.TLSConfig); !errors.Is(err, refused) {
		t.Error(err)
	}
}
