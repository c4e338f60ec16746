package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// between finds who has a slot, and chooses another primary for it.
func (v *servers) between(slot uint16, list []shard, pick uint64) (from, to *server.Node, _ error) {
	var others []*server.Node
	for _, s := range list {
		owned, err := owns(s.primary, int(slot))
		switch {
		case err != nil:
			return nil, nil, err
		case owned:
			from = s.primary
		default:
			others = append(others, s.primary)
		}
	}
	if from == nil || len(others) == 0 {
		return nil, nil, fmt.Errorf("nobody has slot %d, or nobody else can take it", slot)
	}
	return from, others[pick%uint64(len(others))], nil
}

// move moves a slot to a primary, as redis-cli does, with its keys one by one. Connections can be
// killed meanwhile, so it goes on until all of it is done: a slot that is left half on its way
// would lose keys in the next failover.
func (v *servers) move(slot uint16, from, to *server.Node) (err error) {
	until(20*time.Second, func() bool {
		err = tryMove(int(slot), from, to)
		return err == nil
	})
	return err
}

func tryMove(slot int, from, to *server.Node) error {
	source, err1 := self(from)
	target, err2 := self(to)
	done, err3 := owns(to, slot)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	number := strconv.Itoa(slot)
	set := func(n *server.Node, how, id string) func() error {
		return func() error { return tell(n.Addr, "CLUSTER", "SETSLOT", number, how, id) }
	}
	steps := []func() error{set(to, "IMPORTING", source[0]), set(from, "MIGRATING", target[0]),
		func() error { return moveKeys(number, from, to) }, set(to, "NODE", target[0])}
	if done { // the target cannot import it any more
		steps = nil
	}
	for _, step := range append(steps, set(from, "NODE", target[0])) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// moveKeys moves what is in a slot. A key can be at the target already, if the answer to a MIGRATE
// was lost; nobody has changed it there, because the source still had it.
func moveKeys(slot string, from, to *server.Node) error {
	host, port, _ := strings.Cut(to.Addr, ":")
	for {
		m, err := probe(from.Addr, "CLUSTER", "GETKEYSINSLOT", slot, "10")
		if err != nil {
			return err
		}
		keys, err := m.AsStrSlice()
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := tell(from.Addr, "MIGRATE", host, port, key, "0", "1000", "REPLACE"); err != nil {
				return err
			}
		}
	}
}
