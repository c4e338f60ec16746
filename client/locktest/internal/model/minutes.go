package model

import (
	"fmt"
	"strings"
)

// replay does the deeds one after the other and tells what happens. Clients and servers keep their
// names, although they change places.
func (p *polled) replay(deeds []Deed) *Trace[Deed] {
	t := &Trace[Deed]{Actions: deeds}
	s := p.first()
	clients, servers := [maxClients]string{"A", "B", "C"}, [members]string{"1", "2", "3"}
	for n, d := range deeds {
		told := d.describe(clients[d.Client], servers[d.Server])
		if possible, _ := p.apply(&s, d); !possible {
			panic("model: a trace cannot be replayed: " + told)
		}
		to := p.normalize(&s)
		was, were := clients, servers
		for from, to := range to.voters[:p.Clients] {
			clients[to] = was[from]
		}
		for from, to := range to.members {
			servers[to] = were[from]
		}
		t.Text = append(t.Text, fmt.Sprintf("%3d. %-48s %s", n+1, told, p.sketch(&s, clients, servers)))
	}
	t.watched = clients[0]
	return t
}

// sketch is a state in one line, with the servers in the order of their names.
func (p *polled) sketch(s *Poll, clients [maxClients]string, servers [members]string) string {
	var b strings.Builder
	for _, name := range []string{"1", "2", "3"} {
		for n := range s.Members {
			if servers[n] != name {
				continue
			}
			m := &s.Members[n]
			fmt.Fprintf(&b, "%s: %s", name, m.Lock.sketch(clients))
			if m.Age < p.Guard {
				b.WriteString(" (young)")
			}
			b.WriteString("; ")
		}
	}
	for i := range s.Voters[:p.Clients] {
		v := &s.Voters[i]
		if v.Believes() {
			fmt.Fprintf(&b, "| %s holds for %d, token %d ", clients[i], left(v.Lease), v.Fence)
		} else if !v.over() {
			fmt.Fprintf(&b, "| %s has %d yes ", clients[i], count(v.Yes))
		}
	}
	return b.String()
}
