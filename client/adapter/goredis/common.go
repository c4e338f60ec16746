// SPDX-License-Identifier: Apache-2.0

package holdfastgoredis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

type (
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	provider func() (user, password string)
)

// common is what all types of options have.
type common struct {
	network, name, user, password, suffix  string
	dialer                                 dial
	protocol                               int
	provider                               provider
	providerContext                        func(ctx context.Context) (user, password string, err error)
	dialTimeout, readTimeout, writeTimeout time.Duration
	tls                                    *tls.Config
	anonymous                              bool
}

// dialTimeout is the default of go-redis, and of rueidis too.
const dialTimeout = 5 * time.Second

func (c common) option() (rueidis.ClientOption, error) {
	o := rueidis.ClientOption{Username: userOf(c.user, c.password), Password: c.password, ClientName: c.name, TLSConfig: c.tls}
	if c.dialTimeout < 0 {
		return o, unfit("DialTimeout", c.dialTimeout)
	}
	if c.dialTimeout == 0 {
		c.dialTimeout = dialTimeout
	}
	o.Dialer.Timeout = c.dialTimeout
	if c.readTimeout < 0 {
		return o, unfit("ReadTimeout", c.readTimeout)
	}
	if c.writeTimeout < 0 {
		return o, unfit("WriteTimeout", c.writeTimeout)
	}
	o.ConnWriteTimeout = max(c.readTimeout, c.writeTimeout)
	switch {
	case c.protocol > 3:
		return o, unfit("Protocol", c.protocol)
	case c.protocol == 2:
		o.AlwaysRESP2, o.DisableCache = true, true
	}
	switch {
	case c.anonymous:
		o.ClientSetInfo = rueidis.DisableClientSetInfo
	case c.suffix != "":
		o.ClientSetInfo = []string{fmt.Sprintf("%s(%s)", rueidis.LibName, c.suffix), rueidis.LibVer}
	}
	o.DialCtxFn = c.dialing()
	o.AuthCredentialsFn = c.credentials()
	return o, nil
}

// dialing is nil for TCP without a Dialer: rueidis does that as go-redis does.
func (c common) dialing() func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	network := c.network
	if network == "" {
		network = "tcp"
	}
	if c.dialer != nil {
		return func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, c.dialTimeout)
			defer cancel()
			return c.dialer(ctx, network, addr)
		}
	}
	if network == "tcp" {
		return nil
	}
	return func(ctx context.Context, addr string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		if cfg != nil {
			return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, network, addr)
		}
		return d.DialContext(ctx, network, addr)
	}
}

// credentials asks the provider that go-redis would ask, for each connection; nil without one.
func (c common) credentials() func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	ask := c.providerContext
	if ask == nil && c.provider != nil {
		ask = func(context.Context) (string, string, error) {
			user, password := c.provider()
			return user, password, nil
		}
	}
	if ask == nil {
		return nil
	}
	return func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		ctx, cancel := context.WithTimeout(context.Background(), c.dialTimeout)
		defer cancel()
		user, password, err := ask(ctx)
		return rueidis.AuthCredentials{Username: userOf(user, password), Password: password}, err
	}
}

// userOf is the user that go-redis authenticates as: nobody without a password, for whom rueidis would
// send an AUTH.
func userOf(user, password string) string {
	if password == "" {
		return ""
	}
	return user
}

func unfit(option string, value any) error {
	return fmt.Errorf("holdfast: goredis: %w: %s %v cannot be mapped", client.ErrArgument, option, value)
}
