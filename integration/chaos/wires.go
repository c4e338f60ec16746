// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/integration/server"
)

// proxies are some of those between clients and servers, or between servers.
type proxies []*server.Proxy

// each does something to all, in their order: all of one thing before the next.
func (l proxies) each(deeds ...func(*server.Proxy)) {
	for _, do := range deeds {
		for _, p := range l {
			do(p)
		}
	}
}

// resume ends a silence: what was sent arrives late, or its connections end.
func (l proxies) resume(hangUp bool) {
	if hangUp {
		l.each((*server.Proxy).Cut)
	}
	l.each((*server.Proxy).Resume)
}

func (l proxies) close() error {
	var errs []error
	for _, p := range l {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// wires are the proxies between one place of a client process and the servers, sentinels too. The
// process that takes the place of one that was killed has the same.
type wires struct {
	all   proxies
	nodes []*server.Node // behind them, in the same order: first those that hold data
	data  int            // how many those are
}

func newWires(d *server.Deployment) (*wires, error) {
	w := &wires{nodes: slices.Concat(d.Nodes(), d.Sentinels()), data: len(d.Nodes())}
	for _, n := range w.nodes {
		p, err := server.StartProxy(n.Addr)
		if err != nil {
			return nil, errors.Join(err, w.all.close())
		}
		w.all = append(w.all, p)
	}
	return w, nil
}

// addrs are those of the proxies, by the address of the server behind each.
func (w *wires) addrs() map[string]string {
	to := map[string]string{}
	for i, n := range w.nodes {
		to[n.Addr] = w.all[i].Addr
	}
	return to
}
