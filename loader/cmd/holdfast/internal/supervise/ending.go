// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// ErrSilent is why a command was ended before its lease was: the server does not answer, or refuses.
var ErrSilent = errors.New("the lock is not renewed, and the lease ends soon")

// ending decides when to end a command, and how.
type ending struct {
	hold    Hold
	process *process
	grace   time.Duration
	notice  time.Duration // SIGTERM comes so long before the end of a lease that is not renewed
	say     func(string)
	due     time.Time // when to look again, by the wall clock
	// This process stood still, and has until then to renew: nobody ends the command before.
	renewed time.Time

	why    error // nil: it may run
	over   bool  // why is the cause of the hold's context
	kill   time.Time
	killed bool
}

const (
	never = 24 * time.Hour         // longer than any wait here
	late  = 100 * time.Millisecond // what comes so late shows that this process stood still
)

// wake notes whether this process stood still. A renewal could not be sent then. The wall clock tells, because
// the other one stands still too while the machine is suspended.
func (e *ending) wake() {
	e.notice = max(e.notice, min(e.grace, e.hold.Remaining()/3)) // a lock that was handed over has little left at first
	switch left, now := e.hold.Remaining(), time.Now(); {
	case left > e.notice:
		e.renewed = time.Time{}
	case e.renewed.IsZero() && now.Sub(e.due) > late: // once: on a loaded host each look is late
		e.renewed = now.Add(left / 4)
	}
}

// next is when to look again at the latest.
func (e *ending) next() time.Duration {
	switch {
	case e.killed:
		return never
	case e.why != nil:
		return min(time.Until(e.kill), e.untilOver())
	}
	return max(0, e.hold.Remaining()-e.notice, time.Until(e.renewed))
}

// untilOver is the rest of the lease, while its end is still to come.
func (e *ending) untilOver() time.Duration {
	if e.over {
		return never
	}
	return e.hold.Remaining()
}

// look does what is due.
func (e *ending) look() {
	ctx := e.hold.Context()
	switch {
	case e.killed:
	case ctx.Err() != nil && !e.over:
		e.lose(ctx)
	case e.why == nil:
		if left := e.hold.Remaining(); left <= e.notice && time.Until(e.renewed) <= 0 {
			e.begin(ErrSilent, fmt.Sprintf("%v, in %v", ErrSilent, left.Round(time.Millisecond)))
		}
	case !time.Now().Before(e.kill):
		e.end(fmt.Sprintf("the command still runs after %v: killing it", e.grace))
	}
}

// lose follows the end of the hold's context.
func (e *ending) lose(ctx context.Context) {
	<-ctx.Done() // Err can be a moment earlier, when there is no cause yet
	begun, cause := e.why != nil, context.Cause(ctx)
	e.why, e.over = cause, true
	text := strings.TrimPrefix(cause.Error(), "holdfast: ")
	switch {
	case errors.Is(cause, client.ErrExpired):
		// Another may have the lock from now on. The time to stop was before that.
		e.end(text + ": killing the command")
	case !begun:
		e.begin(cause, text)
	default:
		e.say(text)
	}
}

// begin asks the command to stop.
func (e *ending) begin(why error, text string) {
	e.why, e.kill = why, time.Now().Add(e.grace)
	if e.grace == 0 {
		e.end(text + ": killing the command")
		return
	}
	e.say(text + ": ending the command")
	e.process.terminate()
}

func (e *ending) end(text string) {
	e.killed = true
	e.say(text)
	e.process.kill()
}

// result is asked for when the command has ended.
func (e *ending) result() Result {
	if ctx := e.hold.Context(); !e.over && ctx.Err() != nil {
		<-ctx.Done()
		e.why = context.Cause(ctx)
		e.say(strings.TrimPrefix(e.why.Error(), "holdfast: "))
	}
	if e.why != nil {
		// What the command started may run on, beside the next holder.
		e.process.killRest()
	}
	state := e.process.cmd.ProcessState
	return Result{Code: status(state), SIGINT: interrupted(state), Lost: e.why}
}
