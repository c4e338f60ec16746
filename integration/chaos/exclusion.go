package main

import (
	"cmp"
	"fmt"
	"slices"
)

// finding is the outcome of a check: what must not be, and what the table admits.
type finding struct {
	violations []violation
	admitted   map[kind]int
	lost       map[*hold]bool // holders that met another one, whether admitted or not
}

// byLock are the holds of each lock, by when they were seen first.
func byLock(holds []*hold) map[string][]*hold {
	locks := map[string][]*hold{}
	for _, h := range holds {
		locks[h.Lock] = append(locks[h.Lock], h)
	}
	for _, list := range locks {
		slices.SortFunc(list, func(a, b *hold) int { return cmp.Compare(a.Enter, b.Enter) })
	}
	return locks
}

// checkExclusion looks for two in one lock. Of two the one with the lower token has lost it: the
// faults since its grant decide; or the other one has it from a primary that was none. Two are also
// in it if one is seen with an older token after another one has come and gone: its lock was given
// to the other in between.
func checkExclusion(holds []*hold, faults []*fault) finding {
	f := finding{admitted: map[kind]int{}, lost: map[*hold]bool{}}
	for _, list := range byLock(holds) {
		var open []*hold  // may be inside still
		var highest *hold // of the tokens so far
		for _, b := range list {
			open = slices.DeleteFunc(open, func(a *hold) bool { return a.Last < b.Enter })
			for _, a := range open {
				// Who was killed after one look was inside at a moment between Last and Enter.
				if !sameHolder(a, b) && (b.Last >= b.Enter || b.Last >= a.Enter) {
					f.met(a, b, b.Enter, faults,
						fmt.Sprintf("%s was inside when %s entered, and for %v more", a, b,
							min(a.Last, b.Last).sub(b.Enter)))
				}
			}
			open = append(open, b)
			if a := highest; a != nil && a.Token > b.Token && a.Last < b.Enter {
				f.met(a, b, a.Enter, faults,
					fmt.Sprintf("%s was inside until %v before %s, whose token is older", a,
						b.Enter.sub(a.Last), b))
			}
			if highest == nil || b.Token > highest.Token {
				highest = b
			}
		}
	}
	return f
}

// sameHolder reports whether both are one acquisition. A raw caller whose lease seemed to be over
// can learn that it is not.
func sameHolder(a, b *hold) bool { return a.Owner == b.Owner && a.Token == b.Token }

// met judges that a and b were both inside at a moment.
func (f *finding) met(a, b *hold, at stamp, faults []*fault, text string) {
	older, newer := a, b
	if b.Token < a.Token {
		older, newer = b, a
	}
	if why := excuse(older, at, faults); why != nil {
		f.lost[older] = true
		f.admitted[why.Kind]++
		return
	}
	if why := void(newer, faults); why != nil {
		f.lost[newer] = true
		f.admitted[why.Kind]++
		return
	}
	f.lost[older] = true
	f.violations = append(f.violations, violation{Rule: "exclusion", Lock: a.Lock, At: at,
		Text: text})
}
