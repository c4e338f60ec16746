// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strconv"
	"strings"
	"time"
)

// Holder is who has a lock, as far as its owner string tells. Owners made by this client name host,
// process and label, and those of the modules for other languages host and process; of any other only
// Owner is set. All of it is text from others: those who may take a lock choose it.
type Holder struct {
	Owner string
	Host  string
	PID   int
	Label string
	// when it asked for the lock, by its own clock; from Inspect when it got it, by the server's.
	// Zero: unknown
	Since time.Time
}

// String is short, for messages: host, process and label, or the owner string in quotes. What
// cannot be printed is escaped.
func (h Holder) String() string {
	if h.Host == "" {
		return strconv.Quote(h.Owner)
	}
	text := printable(h.Host) + " pid " + strconv.Itoa(h.PID)
	if h.Label != "" {
		text += " (" + printable(h.Label) + ")"
	}
	return text
}

// printable escapes what cannot be printed.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// ParseHolder reads an owner string, of a holder or of a waiter, for tools that find one: in a message
// of the server, a log, or the line of a lock. Since is when its owner asked for the lock, by its own
// clock.
func ParseHolder(owner string) Holder { return parseHolder(owner, 0) }

// latest is the last millisecond of the year 9999, after which a time cannot be JSON.
const latest = 253402300799999

// parseHolder reads an owner string; "" is nobody's. fence, if positive, is the token that the server
// gave it.
func parseHolder(owner string, fence int64) Holder {
	h := Holder{Owner: owner}
	if fence > 0 && owner != "" {
		h.Since = time.UnixMicro(fence)
	}
	parts := strings.SplitN(owner, ":", 5)
	if len(parts) < 3 || len(parts[2]) != 16 {
		return h
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return h
	}
	if len(parts) > 3 { // owners of other languages do not say when they asked
		asked, _, _ := strings.Cut(parts[3], ".")
		at, err := strconv.ParseInt(asked, 36, 64)
		if err != nil || at < 0 || at > latest {
			return h
		}
		if h.Since.IsZero() {
			h.Since = time.UnixMilli(at)
		}
	}
	h.Host, h.PID = parts[0], pid
	if len(parts) == 5 {
		h.Label = parts[4]
	}
	return h
}
