// SPDX-License-Identifier: Apache-2.0

package holdfastgoredis

//lint:file-ignore SA1019 go-redis heeds DisableIndentity, although it is deprecated, and so do we

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

// Single maps the options of redis.NewClient: one server.
//
// Errors: *UnmappedError, and client.ErrArgument for a value that cannot be mapped.
func Single(o *redis.Options, opts ...Option) (rueidis.ClientOption, error) {
	if o == nil {
		return wrong("no redis.Options")
	}
	if err := check(o, opts, "Network", "Addr", "DB"); err != nil {
		return rueidis.ClientOption{}, err
	}
	if o.Addr == "FailoverClient" { // its Dialer knows the primary, but rueidis would stay with an old one
		return wrong("redis.Options of a failover client: map its FailoverOptions")
	}
	addr := o.Addr
	if addr == "" {
		addr = "localhost:6379"
	}
	network := o.Network
	if network == "" && strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	option, err := common{
		network: network, name: o.ClientName, dialer: o.Dialer, protocol: o.Protocol,
		user: o.Username, password: o.Password,
		provider: o.CredentialsProvider, providerContext: o.CredentialsProviderContext,
		dialTimeout: o.DialTimeout, readTimeout: o.ReadTimeout, writeTimeout: o.WriteTimeout, tls: o.TLSConfig,
		anonymous: o.DisableIdentity || o.DisableIndentity, suffix: o.IdentitySuffix,
	}.option()
	// go-redis sends no SELECT below 0
	option.InitAddress, option.SelectDB, option.ForceSingleClient = []string{addr}, max(o.DB, 0), true
	return option, err
}

// Cluster maps the options of redis.NewClusterClient.
//
// Errors: *UnmappedError, for NewClient and ClusterSlots too; client.ErrArgument without an address, and
// for a value that cannot be mapped.
func Cluster(o *redis.ClusterOptions, opts ...Option) (rueidis.ClientOption, error) {
	if o == nil {
		return wrong("no redis.ClusterOptions")
	}
	own := *o
	if reflect.ValueOf(o.NewClient).Pointer() == reflect.ValueOf(redis.NewClient).Pointer() {
		own.NewClient = nil // it is the default, which NewClusterClient writes into the options
	}
	if err := check(&own, opts, "Addrs"); err != nil {
		return rueidis.ClientOption{}, err
	}
	if len(o.Addrs) == 0 {
		return wrong("Addrs is empty")
	}
	option, err := common{
		name: o.ClientName, dialer: o.Dialer, protocol: o.Protocol,
		user: o.Username, password: o.Password,
		provider: o.CredentialsProvider, providerContext: o.CredentialsProviderContext,
		dialTimeout: o.DialTimeout, readTimeout: o.ReadTimeout, writeTimeout: o.WriteTimeout, tls: o.TLSConfig,
		anonymous: o.DisableIdentity || o.DisableIndentity, suffix: o.IdentitySuffix,
	}.option()
	option.InitAddress = slices.Clone(o.Addrs)
	return option, err
}

// Failover maps the options of redis.NewFailoverClient: a primary behind Sentinel. With a credentials
// provider it is an *UnmappedError: the sentinels would be given the primary's credentials.
//
// Errors: *UnmappedError; client.ErrArgument without MasterName or an address, and for a value that
// cannot be mapped.
func Failover(o *redis.FailoverOptions, opts ...Option) (rueidis.ClientOption, error) {
	if o == nil {
		return wrong("no redis.FailoverOptions")
	}
	err := check(o, opts, "MasterName", "SentinelAddrs", "SentinelUsername", "SentinelPassword", "DB")
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	var dynamic []string
	if o.CredentialsProvider != nil {
		dynamic = append(dynamic, "CredentialsProvider")
	}
	if o.CredentialsProviderContext != nil {
		dynamic = append(dynamic, "CredentialsProviderContext")
	}
	if dynamic != nil {
		return rueidis.ClientOption{}, &UnmappedError{Type: "redis.FailoverOptions", Options: dynamic}
	}
	if o.MasterName == "" || len(o.SentinelAddrs) == 0 {
		return wrong("MasterName or SentinelAddrs is empty")
	}
	option, err := common{
		name: o.ClientName, dialer: o.Dialer, protocol: o.Protocol,
		user: o.Username, password: o.Password,
		dialTimeout: o.DialTimeout, readTimeout: o.ReadTimeout, writeTimeout: o.WriteTimeout, tls: o.TLSConfig,
		anonymous: o.DisableIdentity || o.DisableIndentity, suffix: o.IdentitySuffix,
	}.option()
	option.InitAddress, option.SelectDB = slices.Clone(o.SentinelAddrs), max(o.DB, 0)
	option.Sentinel = rueidis.SentinelOption{
		MasterSet: o.MasterName, Username: userOf(o.SentinelUsername, o.SentinelPassword), Password: o.SentinelPassword,
		ClientName: option.ClientName, Dialer: option.Dialer, TLSConfig: option.TLSConfig,
	}
	return option, err
}

// Universal maps the options of redis.NewUniversalClient, and chooses as that does: Failover with a
// MasterName, Cluster with several addresses or IsClusterMode, and Single else. What belongs to another
// one is an *UnmappedError, such as DB with a Cluster.
//
// Errors: as those.
func Universal(o *redis.UniversalOptions, opts ...Option) (rueidis.ClientOption, error) {
	if o == nil {
		return wrong("no redis.UniversalOptions")
	}
	u := *o // Failover and Cluster write defaults into it
	switch {
	case u.MasterName != "":
		// IsClusterMode is about reads from replicas here
		err := check(o, opts, "Addrs", "MasterName", "SentinelUsername", "SentinelPassword", "DB", "IsClusterMode")
		if err != nil {
			return rueidis.ClientOption{}, err
		}
		u.ReadOnly = false // left out, or else check had named it
		return Failover(u.Failover(), opts...)
	case len(u.Addrs) > 1 || u.IsClusterMode:
		if err := check(o, opts, "Addrs", "IsClusterMode"); err != nil {
			return rueidis.ClientOption{}, err
		}
		return Cluster(u.Cluster(), opts...)
	}
	if err := check(o, opts, "Addrs", "DB"); err != nil {
		return rueidis.ClientOption{}, err
	}
	return Single(u.Simple(), opts...)
}

func wrong(text string) (rueidis.ClientOption, error) {
	return rueidis.ClientOption{}, fmt.Errorf("holdfast: goredis: %w: %s", client.ErrArgument, text)
}
