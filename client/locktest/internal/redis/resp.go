// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The kinds of replies that are not Go's own: nil, string (bulk), int, int64 and []any stand
// for themselves.
type (
	// Status is a simple string.
	Status string
	// Error is an error reply, its code first.
	Error   string
	push    []any // out of band in RESP3, an array in RESP2
	pairs   []any // a map in RESP3, a flat array in RESP2
	several []any // more than one reply: SSUBSCRIBE of several channels
)

func (e Error) Error() string { return string(e) }

const (
	maxArguments = 1 << 20
	maxBulk      = 512 << 20
)

// protocolError is what the server answers before it closes the connection.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// readCommand reads one command. A command of no words is empty, and no error.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readHead(r, '*', maxArguments, "multibulk length")
	if err != nil || n <= 0 {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		m, err := readHead(r, '$', maxBulk, "bulk length")
		if err != nil {
			return nil, err
		}
		if m < 0 {
			return nil, protocolError("ERR Protocol error: invalid bulk length")
		}
		b := make([]byte, m+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		out[i] = string(b[:m])
	}
	return out, nil
}

func readHead(r *bufio.Reader, kind byte, most int, what string) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 3 || line[0] != kind {
		return 0, protocolError(fmt.Sprintf("ERR Protocol error: expected '%c', got '%c'", kind, line[0]))
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n > most {
		return 0, protocolError("ERR Protocol error: invalid " + what)
	}
	return n, nil
}

// encoder writes replies in one version of the protocol.
type encoder struct {
	resp3 bool
}

var ends = strings.NewReplacer("\r", " ", "\n", " ")

func head(b []byte, kind byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, kind), n, 10), '\r', '\n')
}

func (e encoder) encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		if e.resp3 {
			return append(b, "_\r\n"...)
		}
		return append(b, "$-1\r\n"...)
	case Status:
		return append(append(append(b, '+'), v...), '\r', '\n')
	case Error: // it can repeat what a caller sent; an end of line in it would begin another reply
		return append(append(append(b, '-'), ends.Replace(string(v))...), '\r', '\n')
	case int:
		return head(b, ':', int64(v))
	case int64:
		return head(b, ':', v)
	case string:
		return append(append(head(b, '$', int64(len(v))), v...), '\r', '\n')
	case []any:
		return e.list(head(b, '*', int64(len(v))), v)
	case several:
		return e.list(b, v)
	case push:
		if e.resp3 {
			return e.list(head(b, '>', int64(len(v))), v)
		}
		return e.encode(b, []any(v))
	case pairs:
		if e.resp3 {
			return e.list(head(b, '%', int64(len(v)/2)), v)
		}
		return e.encode(b, []any(v))
	}
	panic(fmt.Sprintf("redis: no RESP for %T", v))
}

func (e encoder) list(b []byte, vs []any) []byte {
	for _, v := range vs {
		b = e.encode(b, v)
	}
	return b
}
