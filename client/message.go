package client

import (
	"strconv"
	"strings"
)

// deliver hands a message to whom it is for: 'fence until_ms owner', 'broken fence owner_bytes owner reason', or our own
// 'echo id '. A grant that nobody waits for crossed with a wait that ended: its leave gives the lock back.
func (in *inbox) deliver(s *subscription, message string) {
	first, rest, _ := strings.Cut(message, " ")
	second, rest, ok := strings.Cut(rest, " ")
	if !ok {
		return
	}
	switch first {
	case "broken":
		in.broken(second, rest)
		return
	case "echo":
		in.echo(s, second)
		return
	}
	fence, err1 := strconv.ParseInt(first, 10, 64)
	until, err2 := strconv.ParseInt(second, 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if st := s.seats[rest]; st != nil {
		select {
		case <-st.grants: // an older one that was not taken
		default:
		}
		st.grants <- grant{fence, until}
	}
}

func (in *inbox) broken(fence, rest string) {
	size, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n >= len(rest) {
		return
	}
	in.mu.Lock()
	h := in.holders[rest[:n]]
	in.mu.Unlock()
	if h == nil || strconv.FormatInt(h.first, 10) != fence {
		return
	}
	_ = h.current().lose(ErrBroken, rest[n+1:])
}
