package main

import (
	"errors"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// serveEtcd is the child that etcd runs in: so its CPU time and memory are not taken for its
// client's.
func serveEtcd(p *reexec.Parent) error {
	undisturbed()
	if os.Getenv(coresEnv) != "" {
		if _, err := settle(coresApart, serversRole); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "holdfast-bench-etcd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg, err := etcdConfig(dir)
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		return err
	case <-time.After(time.Minute):
		return errors.New("etcd is not ready after a minute")
	}
	p.Say(cfg.AdvertiseClientUrls[0].Host)
	for {
		if _, err := p.Hear(); err != nil {
			return nil // the end of the input
		}
		p.Say(cpuNow().Nanoseconds())
	}
}

func etcdConfig(dir string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.LogLevel = "fatal" // it logs errors when it ends in good order
	cfg.UnsafeNoFsync = true
	client, err := freeURL()
	if err != nil {
		return nil, err
	}
	peer, err := freeURL()
	if err != nil {
		return nil, err
	}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	return cfg, nil
}

// freeURL names a port of this machine that is free now.
func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, err
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
