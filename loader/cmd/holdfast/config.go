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

// config is what the flags, the environment and the files that they name say.
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

// addrList is a flag that may be repeated and may hold several values.
type addrList []string

func (l *addrList) String() string { return strings.Join(*l, ",") }

func (l *addrList) Set(text string) error {
	for _, addr := range strings.Split(text, ",") {
		if addr = strings.TrimSpace(addr); addr == "" {
			return errors.New("empty address")
		}
		*l = append(*l, addr)
	}
	return nil
}

type tlsFlags struct {
	on, skipVerify            bool
	ca, cert, key, serverName string
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
	flags.BoolVar(&secure.on, "tls", false, "")
	flags.StringVar(&secure.ca, "tls-ca", "", "")
	flags.StringVar(&secure.cert, "tls-cert", "", "")
	flags.StringVar(&secure.key, "tls-key", "", "")
	flags.StringVar(&secure.serverName, "tls-server-name", "", "")
	flags.BoolVar(&secure.skipVerify, "tls-skip-verify", false, "")
	flags.BoolVar(&cfg.json, "json", false, "")
	flags.DurationVar(&cfg.timeout, "timeout", defaultTimeout, "")
	if command == "load" || command == "unload" {
		flags.BoolVar(&cfg.dryRun, "dry-run", false, "")
		flags.BoolVar(&cfg.force, "force", false, "")
	}
	if err := flags.Parse(args); err != nil {
		return nil, explainFlag(err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if cfg.timeout <= 0 {
		return nil, errors.New("--timeout must be positive")
	}
	cfg.setAddrs(addrs)
	var err error
	if cfg.password, err = secret("HOLDFAST_PASSWORD", passwordFile); err != nil {
		return nil, err
	}
	if cfg.sentinelPassword, err = secret("HOLDFAST_SENTINEL_PASSWORD", sentinelPasswordFile); err != nil {
		return nil, err
	}
	if cfg.user != "" && cfg.password == "" {
		return nil, errors.New("--user needs a password: set HOLDFAST_PASSWORD or --password-file")
	}
	cfg.tls, err = secure.config()
	return cfg, err
}

// explainFlag must not repeat what was typed: after an unknown --password flag that may be one.
func explainFlag(err error) error {
	if strings.Contains(err.Error(), "not defined: ") && strings.HasSuffix(err.Error(), "password") {
		return errors.New("passwords are not given as flags, because flags can be seen by others: " +
			"set HOLDFAST_PASSWORD or --password-file (at sentinels HOLDFAST_SENTINEL_PASSWORD or --sentinel-password-file)")
	}
	return err
}

func (c *config) setAddrs(given addrList) {
	c.addrGiven = len(given) > 0
	if len(given) == 0 {
		given = addrList{defaultAddr}
	}
	port := defaultPort
	if c.master != "" {
		port = sentinelPort
	}
	for _, addr := range given {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = net.JoinHostPort(strings.Trim(addr, "[]"), port)
		}
		c.addrs = append(c.addrs, addr)
	}
}

// secret reads a password from a file if one is named, without the newline at its end, or else from the environment.
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
