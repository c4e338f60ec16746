package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// captureName is the lock that is captured; a replay puts other names in its place.
const captureName = "captured-lock"

// captureLease outlasts a replay, for those who send the end of the lease as a time.
const captureLease = time.Hour

// capture returns the commands that a rival sends to take a lock and to give it back, as MONITOR
// shows them.
func capture(ctx context.Context, s *site, r rival) ([][]string, error) {
	l, err := r.Open(ctx, s.place, use{Lease: captureLease})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*captureLease)
	defer cancel()
	pair := func(name string) error {
		h, err := l.Lock(ctx, name)
		if err != nil {
			return err
		}
		return h.Unlock()
	}
	if err := pair("warm-up"); err != nil { // connections are made and scripts loaded after this
		return nil, err
	}
	conn, err := net.Dial("tcp", s.place.Redis[0])
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(conn)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return nil, err
	}
	if ok, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(ok, "+OK") {
		return nil, fmt.Errorf("MONITOR: %q %w", ok, err)
	}
	if err := pair(captureName); err != nil {
		return nil, err
	}
	const end = "end-of-capture"
	if _, err := s.place.ask(ctx, "ECHO", end); err != nil {
		return nil, err
	}
	return monitored(lines, r, end)
}

// monitored reads what MONITOR says until a line has the text end, and keeps what the rival sent.
func monitored(lines *bufio.Reader, r rival, end string) (commands [][]string, err error) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if strings.Contains(line, end) {
			return commands, nil
		}
		head, rest, _ := strings.Cut(line, "] ")
		if strings.HasSuffix(head, " lua") {
			continue // by a script or function
		}
		command, err := unquote(strings.TrimSpace(rest))
		if err != nil {
			return nil, fmt.Errorf("MONITOR said %q: %w", line, err)
		}
		if slices.Contains(r.Sends, strings.ToLower(command[0])) {
			commands = append(commands, command)
		}
	}
}

// unquote splits quoted words; Redis escapes them as Go does.
func unquote(text string) (words []string, err error) {
	for text != "" {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return nil, err
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
		text = strings.TrimPrefix(text[len(quoted):], " ")
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("no command")
	}
	return words, nil
}
