package main

import (
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/integration/server"
)

// wires are the proxies between one place of a client process and the servers, sentinels too. The
// process that takes the place of one that was killed has the same.
type wires struct {
	byServer map[string]*server.Proxy
	addrs    []string // the servers that hold data, in order
}

func newWires(d *server.Deployment) (*wires, error) {
	w := &wires{byServer: map[string]*server.Proxy{}}
	for _, n := range slices.Concat(d.Nodes(), d.Sentinels()) {
		p, err := server.StartProxy(n.Addr)
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.byServer[n.Addr] = p
		if n.Role != server.RoleSentinel {
			w.addrs = append(w.addrs, n.Addr)
		}
	}
	return w, nil
}

func (w *wires) proxies() map[string]string {
	to := map[string]string{}
	for addr, p := range w.byServer {
		to[addr] = p.Addr
	}
	return to
}

func (w *wires) heal() {
	for p := range maps.Values(w.byServer) {
		p.DropReplies(0, "")
		p.Delay(0)
		p.Resume()
	}
}

func (w *wires) close() error {
	var errs []error
	for p := range maps.Values(w.byServer) {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
