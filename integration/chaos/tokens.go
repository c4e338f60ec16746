package main

import (
	"cmp"
	"fmt"
	"slices"
)

// checkTokens looks for a token that is not above those before it: who asked when another one was
// inside already has a higher one, if it gets the lock, and no two have the same. No fault is an
// exception: the servers' clock is one clock.
func checkTokens(holds []*hold) []violation {
	var found []violation
	for name, list := range byLock(holds) {
		type mark struct {
			enter stamp
			top   *hold // with the highest token of those who entered until then
		}
		var marks []mark
		of := map[int64]*hold{}
		for _, h := range list {
			top := h
			if n := len(marks); n > 0 && marks[n-1].top.Token > h.Token {
				top = marks[n-1].top
			}
			marks = append(marks, mark{h.Enter, top})
			if a := of[h.Token]; a != nil && !sameHolder(a, h) {
				found = append(found, violation{"token", name, h.Enter,
					fmt.Sprintf("%s and %s have the same", a, h)})
			}
			of[h.Token] = h
		}
		for _, b := range list {
			n, _ := slices.BinarySearchFunc(marks, b.Start,
				func(m mark, at stamp) int { return cmp.Compare(m.enter, at) })
			if n == 0 {
				continue
			}
			if a := marks[n-1].top; a.Token > b.Token {
				found = append(found, violation{"token", name, b.Enter,
					fmt.Sprintf("%s asked %v after %s was inside", b, b.Start.sub(a.Enter), a)})
			}
		}
	}
	return found
}
