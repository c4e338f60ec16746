// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/pflag"
)

const (
	defaultAddr    = "127.0.0.1:6379"
	defaultPort    = "6379"
	sentinelPort   = "26379"
	defaultTimeout = 30 * time.Second
)

// config holds what the flags, the environment and the files that they name say.
type config struct {
	given               given
	command             string
	addrs               []string
	addrGiven           bool
	user, password      string
	master              string
	sentinelUser        string
	sentinelPassword    string
	tls                 *tls.Config // nil without TLS
	library             string      // "": libraryLock
	dryRun, force, json bool
	timeout             time.Duration
}

// given is what was typed and is not yet checked.
type given struct {
	addrs                              addrList
	passwordFile, sentinelPasswordFile string
	tls                                tlsFlags
}

type tlsFlags struct {
	on, skipVerify            bool
	ca, cert, key, serverName string
}

// bind defines the flags of every command.
func (c *config) bind(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(&c.given.addrs, "addr", "server `address`; repeat it or separate by commas. "+
		"For a cluster some of its nodes. host, host:port, redis://user:password@host:port, or rediss:// for TLS. One URL's user and password "+
		"count for all addresses (default $HOLDFAST_ADDR, else "+defaultAddr+")")
	flags.StringVar(&c.master, "sentinel-master", "",
		"the addresses are sentinels, which watch a primary under this `name`")
	flags.StringVar(&c.user, "user", "",
		"ACL user `name`; its password is in $HOLDFAST_PASSWORD, because others can see flags")
	flags.StringVar(&c.given.passwordFile, "password-file", "", "... or in the file at this `path`")
	flags.StringVar(&c.sentinelUser, "sentinel-user", "",
		"user `name` at the sentinels; its password is in $HOLDFAST_SENTINEL_PASSWORD")
	flags.StringVar(&c.given.sentinelPasswordFile, "sentinel-password-file", "", "... or in the file at this `path`")
	c.given.tls.bind(flags)
	flags.BoolVar(&c.json, "json", false, "print JSON, for programs")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "for the whole command, as a `duration`")
}

func (f *tlsFlags) bind(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "tls", false,
		"connect by TLS, with the system's certificate authorities; each of the next implies it")
	flags.StringVar(&f.ca, "tls-ca", "", "trust the authorities in the PEM file at this `path` instead")
	flags.StringVar(&f.cert, "tls-cert", "", "`path` of the client's certificate, PEM")
	flags.StringVar(&f.key, "tls-key", "", "`path` of its key, PEM")
	flags.StringVar(&f.serverName, "tls-server-name", "", "`name` in the server's certificate, if it is not the address")
	flags.BoolVar(&f.skipVerify, "tls-skip-verify", false,
		"UNSAFE: accept any certificate, so anybody in between can read the password")
}

// bindLibrary defines the flag that says which library.
func (c *config) bindLibrary(flags *pflag.FlagSet) {
	flags.StringVar(&c.library, "library", libraryLock, "`which` library: lock, or fenced, for writes that refuse older tokens")
}

// bindChange defines the flags of load and unload.
func (c *config) bindChange(flags *pflag.FlagSet, force string) {
	flags.BoolVar(&c.dryRun, "dry-run", false, "say what would be done, write nothing")
	flags.BoolVar(&c.force, "force", false, force)
}

// complete checks what was given, and reads what it names.
func (c *config) complete() (err error) {
	if c.library != "" && c.library != libraryLock && c.library != libraryFenced {
		return fmt.Errorf("--library must be %s or %s, not %q", libraryLock, libraryFenced, c.library)
	}
	if c.timeout <= 0 {
		return errors.New("--timeout must be positive")
	}
	if c.password, err = secret("HOLDFAST_PASSWORD", c.given.passwordFile); err != nil {
		return err
	}
	if c.sentinelPassword, err = secret("HOLDFAST_SENTINEL_PASSWORD", c.given.sentinelPasswordFile); err != nil {
		return err
	}
	rediss, err := c.locate(c.given.addrs)
	if err != nil {
		return err
	}
	if c.user != "" && c.password == "" {
		return errors.New("a user needs a password: set HOLDFAST_PASSWORD or --password-file")
	}
	c.given.tls.on = c.given.tls.on || rediss
	c.tls, err = c.given.tls.config()
	return err
}

// secret reads a password from a file if one is named, without the newline at its end, or else from
// the environment.
func secret(variable, file string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("password: %w", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	if password == "" {
		return "", fmt.Errorf("password: %s is empty", file)
	}
	return password, nil
}

func (f tlsFlags) config() (*tls.Config, error) {
	if f == (tlsFlags{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName, InsecureSkipVerify: f.skipVerify}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--tls-ca: no certificate in %s", f.ca)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("--tls-cert and --tls-key belong together")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// option is what all connections have in common.
func (c *config) option(addrs ...string) rueidis.ClientOption {
	var again func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)
	if file := c.given.passwordFile; file != "" && c.master == "" { // rueidis would give it to sentinels, too
		again = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			now := rueidis.AuthCredentials{Username: c.user, Password: c.password}
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() { // a pipe is read once
				if changed, err := secret("", file); err == nil {
					now.Password = changed
				}
			}
			return now, nil
		}
	}
	return rueidis.ClientOption{
		AuthCredentialsFn: again,
		InitAddress:       addrs,
		Username:          c.user,
		Password:          c.password,
		ClientName:        "holdfast",
		TLSConfig:         c.tls,
		Dialer:            net.Dialer{Timeout: c.nodeTimeout()},
		ConnWriteTimeout:  c.nodeTimeout(),
		DisableCache:      true, // else the user would need +client|tracking
		PipelineMultiplex: -1,
		Sentinel: rueidis.SentinelOption{
			MasterSet: c.master,
			Username:  c.sentinelUser,
			Password:  c.sentinelPassword,
			TLSConfig: c.tls,
			// a long look must notice that a sentinel fell silent
			Dialer: net.Dialer{Timeout: c.nodeTimeout(), KeepAlive: rueidis.DefaultTCPKeepAlive},
		},
	}
}
