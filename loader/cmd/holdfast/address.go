// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

const addrVariable = "HOLDFAST_ADDR"

// addrList is a flag that may be repeated and may hold several values. It refuses nothing: the error
// would repeat what was typed, passwords too.
type addrList []string

func (l *addrList) String() string { return strings.Join(*l, ",") }

func (l *addrList) Type() string { return "address" }

func (l *addrList) Set(text string) error {
	for _, addr := range strings.Split(text, ",") {
		*l = append(*l, strings.TrimSpace(addr))
	}
	return nil
}

// address is one element of --addr. Only a URL says more than host and port.
type address struct {
	host, port     string // the port may be missing
	user, password string
	tls            bool
}

// errURL does not repeat what was typed, and neither does any other error here: a password can be
// in it.
var errURL = errors.New("not a valid redis:// or rediss:// URL; in a password, write other characters " +
	"than letters and digits percent-encoded (%40 for @)")

func parseAddress(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("empty address")
	}
	scheme, _, isURL := strings.Cut(text, "://")
	if isURL {
		return parseURL(scheme, text)
	}
	if strings.Contains(text, "@") {
		return address{}, errors.New("a user or password needs a URL: redis://user:password@host:port")
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{host: strings.Trim(text, "[]")}, nil
	}
	return address{host: host, port: port}, nil
}

func parseURL(scheme, text string) (address, error) {
	scheme = strings.ToLower(scheme)
	if scheme != "redis" && scheme != "rediss" {
		return address{}, errors.New("a URL begins with redis:// or rediss://")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Fragment != "" || strings.ContainsAny(u.Host, "@"):
		return address{}, errURL
	case u.RawQuery != "":
		return address{}, errors.New("a URL has no parameters here: use the flags")
	case strings.Trim(u.Path, "/0123456789") != "":
		return address{}, errors.New("behind a URL's host only the number of a database may stand, and it is ignored")
	}
	password, _ := u.User.Password()
	return address{host: u.Hostname(), port: u.Port(), user: u.User.Username(), password: password,
		tls: scheme == "rediss"}, nil
}

// locate reads --addr, or else the environment. The URLs' users, passwords and TLS count for all
// nodes of the deployment, so they must agree with each other and with the flags.
func (c *config) locate(given addrList) (secure bool, err error) {
	source := "--addr"
	if fromEnv := os.Getenv(addrVariable); len(given) == 0 && fromEnv != "" {
		source = addrVariable
		_ = given.Set(fromEnv)
	}
	c.addrGiven = len(given) > 0
	if !c.addrGiven {
		given = addrList{defaultAddr}
	}
	port := defaultPort
	if c.master != "" {
		port = sentinelPort
	}
	for i, text := range given {
		a, err := parseAddress(text)
		if err == nil && i > 0 && a.tls != secure {
			err = errors.New("either all addresses are rediss:// or none")
		}
		if err == nil {
			err = c.adopt(a)
		}
		if err != nil {
			return false, fmt.Errorf("%s: address %d: %w", source, i+1, err)
		}
		secure = a.tls
		if a.port == "" {
			a.port = port
		}
		c.addrs = append(c.addrs, net.JoinHostPort(a.host, a.port))
	}
	return secure, nil
}

// adopt takes the user and the password of a URL, unless others were given already.
func (c *config) adopt(a address) error {
	switch {
	case a.user == "" && a.password == "":
		return nil
	case c.master != "":
		return errors.New("with --sentinel-master a URL has no user or password, because it could be " +
			"that of the sentinels or of the servers: use --user and --sentinel-user")
	case a.user != "" && c.user != "" && a.user != c.user:
		return errors.New("another user was given already, by --user or another URL")
	case a.password != "" && c.password != "" && a.password != c.password:
		return errors.New("another password was given already, by HOLDFAST_PASSWORD, " +
			"--password-file or another URL")
	}
	c.user, c.password = cmp.Or(a.user, c.user), cmp.Or(a.password, c.password)
	return nil
}
