package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// planVoters chooses servers of a quorum, and for how long they are away: now and then for longer than
// a lease. The func that it returns does it.
func (v *servers) planVoters(k kind, random *rand.Rand) (do func(rest func(time.Duration)) error,
	target string) {
	n := len(v.nodes) / 2
	switch k {
	case majorityPause, majorityRestart, majorityForget:
		n = len(v.nodes)/2 + 1 + random.IntN(n+1)
	default:
		n = 1 + random.IntN(n)
	}
	x := random.Float64()
	away := time.Duration(x * x * x * float64(votingLongest))
	var list voters
	for _, i := range random.Perm(len(v.nodes))[:n] {
		list = append(list, v.nodes[i])
	}
	begin, end := (*server.Node).Kill, (*server.Node).Restart
	switch k {
	case serverPause, majorityPause:
		begin, end = (*server.Node).Pause, (*server.Node).Resume
	case serverForget, majorityForget:
		end = (*server.Node).Replace
	}
	if (k == serverForget || k == majorityForget) && random.IntN(2) == 0 {
		return func(func(time.Duration)) error {
			return errors.Join(list.each(empty), v.load())
		}, fmt.Sprintf("%v at once", list)
	}
	return func(rest func(time.Duration)) error {
		err := list.each(begin)
		rest(away)
		return errors.Join(err, list.each(end), v.load())
	}, fmt.Sprintf("%v for %v", list, away)
}

// empty leaves a server as one that came back empty before anybody noticed. A busy machine takes longer
// to start one than leases last.
func empty(n *server.Node) error {
	return atOnce(n.Addr, []string{"FUNCTION", "FLUSH"}, []string{"FLUSHALL"})
}

// voters are some servers of a quorum.
type voters []*server.Node

// each does something to all at once.
func (l voters) each(do func(*server.Node) error) error {
	errs := make([]error, len(l))
	var all sync.WaitGroup
	for i, n := range l {
		all.Go(func() { errs[i] = do(n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l voters) String() string {
	var addrs []string
	for _, n := range l {
		addrs = append(addrs, n.Addr)
	}
	return strings.Join(addrs, " ")
}
