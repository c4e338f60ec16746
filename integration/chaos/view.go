package main

import (
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
		view, err := v.owners(n.Addr)
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

// owners is which primary has which slots, as one node sees it.
func (v *servers) owners(addr string) (string, error) {
	m, err := probe(addr, "CLUSTER", "NODES")
	if err != nil {
		return "", err
	}
	text, err := m.ToString()
	if err != nil {
		return "", err
	}
	var rows []string
	for row := range strings.Lines(text) {
		// id address flags primary ping pong epoch link slots...
		f := strings.Fields(row)
		if len(f) >= 8 && strings.Contains(f[2], "master") && !strings.Contains(f[2], "fail") {
			rows = append(rows, f[0]+" "+strings.Join(f[8:], " "))
		}
		if strings.Contains(row, "fail") {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n"), nil
}

func id(n *server.Node) (string, error) {
	m, err := probe(n.Addr, "CLUSTER", "MYID")
	if err != nil {
		return "", err
	}
	return m.ToString()
}

// owns reports whether a node has a slot, by its own account.
func (v *servers) owns(n *server.Node, slot int) (bool, error) {
	m, err := probe(n.Addr, "CLUSTER", "NODES")
	if err != nil {
		return false, err
	}
	text, err := m.ToString()
	if err != nil {
		return false, err
	}
	for row := range strings.Lines(text) {
		f := strings.Fields(row)
		if len(f) < 8 || !strings.Contains(f[2], "myself") {
			continue
		}
		for _, r := range f[8:] {
			first, last, found := strings.Cut(r, "-")
			if !found {
				last = first
			}
			low, err1 := strconv.Atoi(first)
			high, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil && low <= slot && slot <= high {
				return true, nil
			}
		}
	}
	return false, nil
}
