package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	defaultAddr    = "127.0.0.1:6379"
	defaultPort    = "6379"
	sentinelPort   = "26379"
	defaultTimeout = 30 * time.Second
)

// config holds what the flags, the environment and the files that they name say.
type config struct {
	command             string
	addrs               []string
	addrGiven           bool
	user, password      string
	master              string
	sentinelUser        string
	sentinelPassword    string
	tls                 *tls.Config // nil without TLS
	dryRun, force, json bool
	timeout             time.Duration
}

type tlsFlags struct {
	on, skipVerify            bool
	ca, cert, key, serverName string
}

func (f *tlsFlags) define(flags *flag.FlagSet) {
	flags.BoolVar(&f.on, "tls", false, "")
	flags.StringVar(&f.ca, "tls-ca", "", "")
	flags.StringVar(&f.cert, "tls-cert", "", "")
	flags.StringVar(&f.key, "tls-key", "", "")
	flags.StringVar(&f.serverName, "tls-server-name", "", "")
	flags.BoolVar(&f.skipVerify, "tls-skip-verify", false, "")
}

func parse(command string, args []string) (*config, error) {
	cfg := &config{command: command}
	var addrs addrList
	var passwordFile, sentinelPasswordFile string
	var secure tlsFlags
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var(&addrs, "addr", "")
	flags.StringVar(&cfg.master, "sentinel-master", "", "")
	flags.StringVar(&cfg.user, "user", "", "")
	flags.StringVar(&passwordFile, "password-file", "", "")
	flags.StringVar(&cfg.sentinelUser, "sentinel-user", "", "")
	flags.StringVar(&sentinelPasswordFile, "sentinel-password-file", "", "")
	secure.define(flags)
	flags.BoolVar(&cfg.json, "json", false, "")
	flags.DurationVar(&cfg.timeout, "timeout", defaultTimeout, "")
	if command == "load" || command == "unload" {
		flags.BoolVar(&cfg.dryRun, "dry-run", false, "")
		flags.BoolVar(&cfg.force, "force", false, "")
	}
	if err := flags.Parse(args); err != nil {
		return nil, explainFlag(err)
	}
	if extra := flags.Arg(0); strings.Contains(extra, "@") { // not repeated: it may have a password
		return nil, errors.New("unexpected argument: an address is given by --addr")
	} else if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", extra)
	}
	if cfg.timeout <= 0 {
		return nil, errors.New("--timeout must be positive")
	}
	var err error
	if cfg.password, err = secret("HOLDFAST_PASSWORD", passwordFile); err != nil {
		return nil, err
	}
	if cfg.sentinelPassword, err = secret("HOLDFAST_SENTINEL_PASSWORD", sentinelPasswordFile); err != nil {
		return nil, err
	}
	rediss, err := cfg.locate(addrs)
	if err != nil {
		return nil, err
	}
	if cfg.user != "" && cfg.password == "" {
		return nil, errors.New("a user needs a password: set HOLDFAST_PASSWORD or --password-file")
	}
	secure.on = secure.on || rediss
	cfg.tls, err = secure.config()
	return cfg, err
}

// explainFlag must not repeat what was typed: after an unknown --password flag that may be one.
func explainFlag(err error) error {
	if strings.Contains(err.Error(), "not defined: ") && strings.HasSuffix(err.Error(), "password") {
		return errors.New("passwords are not given as flags, because flags can be seen by others: " +
			"set HOLDFAST_PASSWORD or --password-file (at sentinels HOLDFAST_SENTINEL_PASSWORD or " +
			"--sentinel-password-file)")
	}
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
	return rueidis.ClientOption{
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
			Dialer:    net.Dialer{Timeout: c.nodeTimeout()},
		},
	}
}
