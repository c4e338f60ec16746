package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/integration/server"
)

// disagree says which node of a Cluster sees it otherwise than the first.
func (v *servers) disagree() string {
	first := ""
	for _, n := range v.nodes {
		m, err := probe(n.Addr, "CLUSTER", "INFO")
		if err != nil {
			return n.Addr + " does not answer"
		}
		if text, _ := m.ToString(); !strings.Contains(text, "cluster_state:ok") {
			return n.Addr + " finds the Cluster down"
		}
		view, err := owners(n.Addr)
		if err != nil {
			return n.Addr + ": " + err.Error()
		}
		if first == "" {
			first = view
		}
		if view != first {
			return n.Addr + " sees other owners of slots than " + v.nodes[0].Addr
		}
	}
	return ""
}

// members are the rows of CLUSTER NODES, as one node sees them:
// id address flags primary ping pong epoch link slots...
func members(addr string) (rows [][]string, err error) {
	m, err := probe(addr, "CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	text, err := m.ToString()
	for row := range strings.Lines(text) {
		if f := strings.Fields(row); len(f) >= 8 {
			rows = append(rows, f)
		}
	}
	return rows, err
}

// owners is which primary has which slots, as one node sees it, and who fails.
func owners(addr string) (string, error) {
	list, err := members(addr)
	var rows []string
	for _, f := range list {
		switch {
		case strings.Contains(f[2], "fail"):
			rows = append(rows, strings.Join(f, " "))
		case strings.Contains(f[2], "master"):
			rows = append(rows, f[0]+" "+strings.Join(f[8:], " "))
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n"), err
}

// self is the row of a node by its own account.
func self(n *server.Node) ([]string, error) {
	list, err := members(n.Addr)
	i := slices.IndexFunc(list, func(f []string) bool { return strings.Contains(f[2], "myself") })
	if err != nil || i < 0 {
		return nil, errors.Join(err, errors.New(n.Addr+" does not know itself"))
	}
	return list[i], nil
}

// owns reports whether a node has a slot, by its own account.
func owns(n *server.Node, slot int) (bool, error) {
	row, err := self(n)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(row[8:], func(r string) bool {
		first, last, found := strings.Cut(r, "-")
		if !found {
			last = first
		}
		low, err1 := strconv.Atoi(first)
		high, err2 := strconv.Atoi(last)
		return err1 == nil && err2 == nil && low <= slot && slot <= high
	}), nil
}
