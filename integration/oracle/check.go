// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is something that must not be.
type Violation struct {
	Rule string
	Lock string
	At   Stamp
	Text string
}

func (v Violation) String() string {
	if v.Lock == "" {
		return v.Rule + ": " + v.Text
	}
	return fmt.Sprintf("%s of %s: %s", v.Rule, v.Lock, v.Text)
}

// Finding is what a look at a whole history finds.
type Finding struct {
	Violations []Violation
	Admitted   map[string]int // meetings, by the name of the fault
	Lost       map[*Hold]bool // holders that met another one, whether admitted or not
}

// ByLock returns the holds of each lock, by when they were seen first.
func ByLock(holds []*Hold) map[string][]*Hold {
	locks := map[string][]*Hold{}
	for _, h := range holds {
		locks[h.Lock] = append(locks[h.Lock], h)
	}
	for _, list := range locks {
		slices.SortFunc(list, func(a, b *Hold) int { return cmp.Compare(a.Enter, b.Enter) })
	}
	return locks
}

// Exclusion looks for two in one lock. Two are also in it if one is seen with an older token after
// another one has come and gone: its lock was given to the other in between.
func (j *Judge) Exclusion(holds []*Hold) Finding {
	f := Finding{Admitted: map[string]int{}, Lost: map[*Hold]bool{}}
	met := func(a, b *Hold, at Stamp, form string, args ...any) {
		lost, why := j.Meet(a, b, at)
		f.Lost[lost] = true
		if why != nil {
			f.Admitted[why.Name]++
			return
		}
		f.Violations = append(f.Violations, Violation{"exclusion", a.Lock, at, fmt.Sprintf(form, args...)})
	}
	for _, list := range ByLock(holds) {
		var open []*Hold              // may be inside still
		highest := map[[2]int]*Hold{} // of the tokens so far, by kind and slot
		for _, b := range list {
			open = slices.DeleteFunc(open, func(a *Hold) bool { return a.Last < b.Enter })
			inside := []*Hold{b}
			for _, a := range open {
				// Who was killed after one look was inside at a moment between Last and Enter.
				if b.Last < b.Enter && b.Last < a.Enter {
					continue
				}
				if inside = append(inside, a); a.Excludes(b) {
					met(a, b, b.Enter, "%s was inside when %s entered, and for %v more", a, b, min(a.Last, b.Last).Sub(b.Enter))
				}
			}
			if h := j.Crowded(inside, b.Enter); h != nil {
				f.Violations = append(f.Violations, Violation{"limit", b.Lock, b.Enter, fmt.Sprintf("%s came in beside too many: %v", h, inside)})
			}
			open = append(open, b)
			for _, a := range highest {
				if a.Token > b.Token && a.Last < b.Enter && a.Excludes(b) {
					met(a, b, a.Enter, "%s was inside until %v before %s, whose token is older", a, b.Enter.Sub(a.Last), b)
				}
			}
			if place := [2]int{Kind(b.Limit), b.Slot}; highest[place] == nil || b.Token > highest[place].Token {
				highest[place] = b
			}
		}
	}
	return f
}

// Tokens looks for a token that is not above those before it: who asked when another one was inside
// already has a higher one, if it gets the lock, and no two have the same. It is for servers that share
// one clock: no fault is an exception.
func Tokens(holds []*Hold) (found []Violation) {
	for name, list := range ByLock(holds) {
		wrong := func(h *Hold, form string, args ...any) {
			found = append(found, Violation{"token", name, h.Enter, fmt.Sprintf(form, args...)})
		}
		tops := make([]*Hold, len(list)) // with the highest token of those who entered until then
		of := map[int64]*Hold{}
		for i, h := range list {
			tops[i] = h
			if i > 0 && tops[i-1].Token > h.Token {
				tops[i] = tops[i-1]
			}
			if a := of[h.Token]; a != nil && !a.Same(h) {
				wrong(h, "%s and %s have the same", a, h)
			}
			of[h.Token] = h
		}
		for _, b := range list {
			n, _ := slices.BinarySearchFunc(list, b.Start, func(h *Hold, at Stamp) int { return cmp.Compare(h.Enter, at) })
			if n == 0 {
				continue
			}
			if a := tops[n-1]; a.Token > b.Token {
				wrong(b, "%s asked %v after %s was inside", b, b.Start.Sub(a.Enter), a)
			}
		}
	}
	return found
}
