package client

import (
	"strconv"
	"strings"
	"time"
)

// Holder is who has a lock, as far as its owner string tells. Owners made by this client name host, process and label; of
// any other only Owner is set.
type Holder struct {
	Owner string
	Host  string
	PID   int
	Label string
	Since time.Time // when it asked for the lock, by its own clock; from Inspect when it got it, by the server's. Zero: unknown
}

// String is short, for messages: host, process and label, or the owner string.
func (h Holder) String() string {
	if h.Host == "" {
		return strconv.Quote(h.Owner)
	}
	text := h.Host + " pid " + strconv.Itoa(h.PID)
	if h.Label != "" {
		text += " (" + h.Label + ")"
	}
	return text
}

// owner makes the owner string of one acquisition: 'host:pid:client:asked.number[:label]', asked in milliseconds since
// 1970, and it and number in base 36. It is never used twice.
func (c *Client) owner(label string) string {
	b := make([]byte, 0, 96)
	b = append(append(b, c.identity...), ':')
	b = append(strconv.AppendInt(b, time.Now().UnixMilli(), 36), '.')
	b = strconv.AppendUint(b, c.seq.Add(1), 36)
	if label != "" {
		b = append(append(b, ':'), label...)
	}
	return string(b)
}

// parseHolder reads an owner string. fence, if positive, is the token that the server gave it.
func parseHolder(owner string, fence int64) Holder {
	h := Holder{Owner: owner}
	if fence > 0 {
		h.Since = time.UnixMicro(fence)
	}
	parts := strings.SplitN(owner, ":", 5)
	if len(parts) < 4 || len(parts[2]) != 16 {
		return h
	}
	pid, err := strconv.Atoi(parts[1])
	asked, _, _ := strings.Cut(parts[3], ".")
	at, err2 := strconv.ParseInt(asked, 36, 64)
	if err != nil || err2 != nil {
		return h
	}
	h.Host, h.PID = parts[0], pid
	if h.Since.IsZero() {
		h.Since = time.UnixMilli(at)
	}
	if len(parts) == 5 {
		h.Label = parts[4]
	}
	return h
}
