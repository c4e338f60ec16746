package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// gauge reads what a primary did, over a connection that it keeps, so that a reading costs this
// process and the server as little as can be.
type gauge struct {
	conn net.Conn
	in   *bufio.Reader
}

func openGauge(addr string) (*gauge, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return &gauge{conn, bufio.NewReader(conn)}, nil
}

// read adds what the primary did since it started.
func (g *gauge) read(a *account) error {
	if err := g.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := g.conn.Write([]byte("*3\r\n$4\r\nINFO\r\n$3\r\ncpu\r\n$12\r\ncommandstats\r\n")); err != nil {
		return err
	}
	head, err := g.in.ReadString('\n')
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(strings.Trim(head, "$\r\n"))
	if err != nil {
		return fmt.Errorf("INFO: %q", head)
	}
	text := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(g.in, text); err != nil {
		return err
	}
	return a.parse(string(text))
}

func (g *gauge) close() { _ = g.conn.Close() }

// parse adds the sections cpu and commandstats of one primary.
func (a *account) parse(info string) error {
	total := int64(0)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		command, isCommand := strings.CutPrefix(name, "cmdstat_")
		switch {
		case name == "used_cpu_user" || name == "used_cpu_sys":
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return fmt.Errorf("INFO: %w", err)
			}
			a.CPU += time.Duration(seconds * float64(time.Second))
		case isCommand:
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			n, err := strconv.ParseInt(calls, 10, 64)
			if err != nil {
				return fmt.Errorf("INFO: %q: %w", line, err)
			}
			a.Calls[command] += n
			total += n
		}
	}
	a.Nodes = append(a.Nodes, total)
	return nil
}
