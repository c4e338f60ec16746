// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"strconv"
	"strings"
)

// Grant is a lock that was handed over. The zero one is a reason to look at the server.
type Grant struct {
	Fence   int64
	UntilMS int64  // the first millisecond after the lease, by the server's clock
	Tokens  int64  // reserved, from Fence on; of a limited or shared lock the slot
	Key     string // "": the server left it out, because it is long
}

// Look reports whether it is no more than a reason to look.
func (g Grant) Look() bool { return g.Fence == 0 }

// deliver hands a message to whom it is for: 'fence until_ms tokens owner_bytes owner[ key]', or 'look
// owner'. Anything else is noise: a user that may write a key can have others publish it.
func (in *Inbox) deliver(s *subscription, text string) {
	if owner, ok := strings.CutPrefix(text, "look "); ok {
		in.notify(s, owner, Grant{})
		return
	}
	g, owner, ok := parseGrant(text)
	if ok && !in.notify(s, owner, g) {
		in.Unclaimed(owner, g)
	}
}

func parseGrant(text string) (g Grant, owner string, ok bool) {
	var numbers [4]int64
	for i := range numbers {
		word, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n <= 0 || n > 1<<53-1 { // no server says more
			return g, "", false
		}
		numbers[i], text = n, rest
	}
	n := numbers[3]
	if n > int64(len(text)) || n < int64(len(text)) && text[n] != ' ' {
		return g, "", false
	}
	key := strings.TrimPrefix(text[n:], " ")
	return Grant{Fence: numbers[0], UntilMS: numbers[1], Tokens: numbers[2], Key: key}, text[:n], true
}

// notify gives a message to those that claim an owner. It reports whether there is one.
func (in *Inbox) notify(s *subscription, owner string, g Grant) bool {
	in.mu.Lock()
	var few [1]*Claim
	claims := append(few[:0], s.claims[owner]...)
	in.mu.Unlock()
	for _, c := range claims {
		c.receive(g)
	}
	return len(claims) > 0
}
