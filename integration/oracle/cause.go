// SPDX-License-Identifier: Apache-2.0

package oracle

// Level is what a holder asked for.
type Level string

// The levels.
const (
	Default  Level = "default"
	Guarded  Level = "guard"
	Replicas Level = "replicas" // all of them
	Quorum   Level = "quorum"
)

// Verdict is what a fault may do to a lock that somebody holds. Each one includes those before it.
type Verdict int

// The verdicts.
const (
	Nothing Verdict = iota // its holder stays the only one
	Loss                   // it can be lost, and its holder learns of that before anybody else gets it
	Second                 // a second holder may be let in beside it, with a higher token
)

// Cause is how a fault takes a lock from its holder.
type Cause string

// The causes.
const (
	None          Cause = ""
	Unreplicated  Cause = "a forced failover lost what was not replicated"
	Deposed       Cause = "a deposed primary goes on"
	DeposedGrants Cause = "a deposed primary grants"
	PausedGrants  Cause = "a primary that was paused wakes up and grants"
	Forgotten     Cause = "a restart without all of its memory"
	Moved         Cause = "a slot moved, and memory had been lost"
	Stranded      Cause = "the target of a move was lost before its replica had the key"
	Forward       Cause = "a server's clock was stepped forward"
	Back          Cause = "a server's clock was stepped back, and memory was lost"
	Differ        Cause = "the clocks of two servers differ"
	Deleted       Cause = "a DEL by hand"
	Ended         Cause = "release of an owner"
	Broken        Cause = "break"
)

// excuse is what docs/guarantees.md admits for a cause.
type excuse struct {
	row    string // how its row of servers begins; "": it has none
	voting string // the same of a quorum
	admits map[Level]Verdict
	also   property
}

// property is what else a cause does.
type property int

const (
	splits  property = 1 << iota // a primary that is none any more may go on granting
	forgets                      // a server may have forgotten locks
	tokens                       // tokens can fall
	later                        // with a guard: only within one of a fault by which locks were forgotten
)

const (
	split  = "split brain"
	move   = "a slot moves to another node"
	theKey = "the key is deleted or evicted, or the lock ended"
	atSome = "the key is deleted or evicted at a minority, or its clock is stepped forward"
	broken = "`Break`"
)

var (
	guardless = map[Level]Verdict{Default: Second, Guarded: Loss}
	anySecond = map[Level]Verdict{Default: Second, Guarded: Second, Replicas: Second}
	allSecond = map[Level]Verdict{Default: Second, Guarded: Second, Replicas: Second, Quorum: Second}
)

// excuses are all that the page admits, and the only place that says so.
var excuses = map[Cause]excuse{
	// The old primary is dead, or hears of the new one within milliseconds.
	Unreplicated: {row: "forced failover", admits: guardless, also: splits | forgets},
	// It stops before the other one is promoted.
	Deposed: {row: split, admits: guardless, also: splits | forgets},
	// It does not stop, and it can grant what the new one renews.
	DeposedGrants: {row: split, admits: map[Level]Verdict{Default: Second, Guarded: Second}, also: splits | forgets},
	PausedGrants: {row: "a primary was paused, and is deposed",
		admits: map[Level]Verdict{Default: Second, Guarded: Second}, also: splits | forgets},
	// One of a quorum that comes back empty does not vote before a guard is over.
	Forgotten: {row: "a server, primary or replica, restarts with an older memory", also: forgets,
		admits: map[Level]Verdict{Default: Second, Guarded: Loss, Replicas: Second}},
	Moved:    {row: move, admits: map[Level]Verdict{Guarded: Second}, also: later},
	Stranded: {row: move, admits: map[Level]Verdict{Replicas: Second}},
	Forward:  {row: "the server's clock is stepped forward", voting: atSome, admits: allSecond},
	Back:     {row: "the server's clock is stepped back", also: tokens},
	Differ:   {row: "the clocks of two servers differ", admits: anySecond, also: tokens},
	// At a minority of a quorum this takes the lock from who has a bare majority, or twice in a row.
	Deleted: {row: theKey, voting: atSome, admits: allSecond},
	Ended:   {row: theKey, admits: anySecond},
	Broken:  {row: "the lock is broken", voting: broken, admits: allSecond},
}

// Verdict is what the table says for a level.
func (c Cause) Verdict(l Level) Verdict { return excuses[c].admits[l] }

// Splits reports whether a primary that is none any more may go on granting. Whom it grants a lock is
// beside the holder at the other primary.
func (c Cause) Splits() bool { return excuses[c].also&splits != 0 }

// Forgets reports whether a server may have forgotten locks.
func (c Cause) Forgets() bool { return excuses[c].also&forgets != 0 }
