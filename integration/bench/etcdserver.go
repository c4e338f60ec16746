package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// serveEtcd is the child that etcd runs in: so its CPU time and memory are not taken for its client's.
func serveEtcd(in *bufio.Scanner) error {
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
	fmt.Println(cfg.AdvertiseClientUrls[0].Host)
	for in.Scan() {
		fmt.Println(cpuNow().Nanoseconds())
	}
	return in.Err()
}

func etcdConfig(dir string) (*embed.Config, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.LogLevel = "error"
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
