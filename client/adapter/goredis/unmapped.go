// SPDX-License-Identifier: Apache-2.0

package holdfastgoredis

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/client"
)

// UnmappedError names the options that are set, and that Holdfast's client cannot have. It is
// client.ErrArgument.
type UnmappedError struct {
	Type    string   // of the options: "redis.Options"
	Options []string // in their order in Type
}

func (e *UnmappedError) Error() string {
	return fmt.Sprintf("holdfast: goredis: %s cannot be mapped: %s", e.Type, strings.Join(e.Options, ", "))
}

// Unwrap returns client.ErrArgument.
func (e *UnmappedError) Unwrap() error { return client.ErrArgument }

// Option says what may be left out.
type Option func(leave map[string]bool)

// Without leaves options out, by their names: the lock's client is then without them. One that is
// mapped is not left out.
func Without(names ...string) Option {
	return func(leave map[string]bool) {
		for _, name := range names {
			leave[name] = true
		}
	}
}

// WithoutTuning leaves out what is about the inside of a go-redis client, and not about which server it
// talks to, how, and as whom.
func WithoutTuning() Option { return Without(tuning...) }

var tuning = []string{
	"MaxRetries", "MinRetryBackoff", "MaxRetryBackoff", "DialerRetries", "DialerRetryTimeout",
	"DialerRetryBackoff", "ReadBufferSize", "WriteBufferSize", "PipelineReadBufferSize",
	"PipelineWriteBufferSize", "PipelinePoolSize", "AutoPipelineOptions", "PoolFIFO", "PoolSize",
	"MaxConcurrentDials", "PoolTimeout", "MinIdleConns", "MaxIdleConns", "MaxActiveConns",
	"ConnMaxIdleTime", "ConnMaxLifetime", "ConnMaxLifetimeJitter", "Limiter", "NodeAddress",
	"FailingTimeoutSeconds", "MaintNotificationsConfig", "PushNotificationProcessor",
	"ClientSideCacheConfig", "ClientSideCache", "ClientSideCacheStrategy",
	"ClientSideCacheRefreshOnInvalidate", "ClientSideCacheCoalesceMisses",
	"ClientSideCacheInvalidationBatchWindow", "MaxRedirects", "ReadOnly", "RouteByLatency",
	"RouteByLatencyTolerance", "RouteRandomly", "ShardPicker", "DisableRoutingPolicies",
	"ClusterStateReloadInterval", "UseDisconnectedReplicas", "ReplicaOnly",
}

// mapped are the options of every type that common has, and those that have no effect in go-redis or
// that Holdfast's client always has.
var mapped = []string{
	"ClientName", "Dialer", "Protocol", "Username", "Password", "CredentialsProvider",
	"CredentialsProviderContext", "DialTimeout", "ReadTimeout", "WriteTimeout", "TLSConfig",
	"DisableIdentity", "DisableIndentity", "IdentitySuffix", "ContextTimeoutEnabled", "UnstableResp3",
}

// check returns an UnmappedError if an option is set that is not mapped, and may not be left out: o is
// a pointer to options, and more are the mapped ones of its own.
func check(o any, opts []Option, more ...string) error {
	leave := map[string]bool{}
	for _, opt := range opts {
		opt(leave)
	}
	v := reflect.ValueOf(o).Elem()
	var names []string
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || v.Field(i).IsZero() || leave[name] ||
			slices.Contains(mapped, name) || slices.Contains(more, name) {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	return &UnmappedError{Type: v.Type().String(), Options: names}
}
