// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
)

// poll counts the answers of the servers to a call.
type poll struct {
	servers, need int
	yes, no       []fcall.Reply
	failed        []error
}

func (p *poll) add(o fcall.Outcome) {
	switch {
	case o.Err != nil:
		p.failed = append(p.failed, o.Err)
	case o.Yes:
		p.yes = append(p.yes, o.Reply)
	default:
		p.no = append(p.no, o.Reply)
	}
}

func (p *poll) answered() int { return len(p.yes) + len(p.no) }

// spare is how many servers may fail.
func (p *poll) spare() int { return p.servers - p.need }

// left is how many have not answered.
func (p *poll) left() int { return p.servers - p.answered() - len(p.failed) }

// open is most while those that have not answered decide, but for so many that are silent; else 0.
func (p *poll) open(silent int, most time.Duration) time.Duration {
	if p.left() <= silent || len(p.yes) >= p.need || len(p.no)+len(p.failed) > p.spare() {
		return 0
	}
	return most
}

// failure is the error of a call that too few servers answered: of the kind that most of those had
// that did not.
func (p *poll) failure() error {
	invalid := slices.DeleteFunc(slices.Clone(p.failed), func(err error) bool { return !errors.Is(err, fcall.ErrInvalid) })
	if len(invalid) > p.spare() {
		return invalid[0]
	}
	return fmt.Errorf("%w: too few of %d servers answer: %v", fcall.ErrUnreachable, p.servers,
		cmp.Or(append(p.failed, errors.New("the others are late"))...))
}

// token is the one that the owner can have: the highest of a majority of votes, and the lowest such.
// Of two majorities, the later one has a server that knew the token of the earlier one, and its own is
// above that. It is 0 if there is no majority.
func (p *poll) token() int64 { return nth(p.yes, fence, p.need) }

// known reports whether a majority has that token, or a higher one.
func (p *poll) known() bool {
	token := p.token()
	return token > 0 && nth(p.yes, fence, len(p.yes)-p.need+1) >= token
}

// decided reports whether nobody waits for further votes. A round that is lost waits for all the same: those
// would have to be given back.
func (p *poll) decided() bool { return p.known() || len(p.failed) > p.spare() }

// busy is the answer of a round that was not won: who has the lock, or until when too few servers vote.
func (p *poll) busy() fcall.Reply {
	if r := p.refusal(); r.Holder != "" {
		return r
	}
	return fcall.Reply{Remaining: nth(p.no, remaining, max(1, p.need-len(p.yes))), Why: functions.WhySettling}
}

// refusal is one of those that said no, if possible one that says that the lock was broken, or one that
// names a holder.
func (p *poll) refusal() (r fcall.Reply) {
	for _, no := range p.no {
		if no.Why == functions.WhyBroken {
			return no
		}
		if r.Holder == "" {
			r = no
		}
	}
	return r
}

// owned is how the lock stands: servers that have not answered may have it as anybody's.
func (p *poll) owned() fcall.Reply {
	by, most := map[string][]fcall.Reply{}, ""
	for _, one := range slices.Concat(p.yes, p.no) {
		at := one.Why + one.Holder // a minimum keeps it, or somebody works
		if by[at] = append(by[at], one); one.Holder != "" && len(by[at]) > len(by[most]) {
			most = at
		}
	}
	of := by[most]
	if len(of) == 0 || len(of)+p.servers-p.answered() < p.need {
		return fcall.Reply{Why: functions.WhyFree}
	}
	// that of the majority: one that voted late can have a higher token, or a lower one
	r := of[0]
	r.Remaining, r.Fence = nth(of, remaining, max(1, len(of)-p.need+1)), nth(of, fence, min(p.need, len(of)))
	return r
}
