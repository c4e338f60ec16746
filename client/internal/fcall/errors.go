// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Kind is a sentinel that belongs to a wider one.
type Kind struct {
	text string
	of   error
}

// NewKind returns a sentinel that errors.Is finds under its own name and under of.
func NewKind(text string, of error) *Kind { return &Kind{text, of} }

func (k *Kind) Error() string { return k.text }

// Unwrap returns the wider sentinel.
func (k *Kind) Unwrap() error { return k.of }

// The kinds of errors that a call can have. Package client exports them.
var (
	ErrBusy        = errors.New("held by another")
	ErrUnreachable = errors.New("server unreachable")
	ErrInvalid     = errors.New("invalid")

	ErrLineFull = NewKind("line is full", ErrBusy)

	ErrNotReplicated = NewKind("too few replicas", ErrUnreachable)

	ErrLibrary  = NewKind("functions library missing or too old", ErrInvalid)
	ErrDenied   = NewKind("permission denied by the server", ErrInvalid)
	ErrNotALock = NewKind("the key is not a lock", ErrInvalid)
	ErrArgument = NewKind("bad argument", ErrInvalid)
)

// Done is a value, in place of the lock.
type Done struct {
	Value string
	Since time.Time
	Keep  time.Duration // from then on the server keeps it for so long, or a little longer
}

func (d *Done) Error() string { return "it has a value already" }

// Unwrap makes it ErrBusy.
func (d *Done) Unwrap() error { return ErrBusy }

// Refusal is an error that the server answered.
type Refusal struct {
	Kind error
	Text string // in the server's words
}

func (e *Refusal) Error() string { return e.Kind.Error() + ": " + e.Text }

// Unwrap returns the kind.
func (e *Refusal) Unwrap() error { return e.Kind }

// unanswered is the error of a call without an answer. A time-out of rueidis is not the end of the
// caller's context, and must not look like one.
func unanswered(err error) error {
	if isContext(err) {
		return fmt.Errorf("%w: %v", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

// NotConnected is the error of a call that was not sent, because of err.
func NotConnected(err error) error {
	return unanswered(&net.OpError{Op: "dial", Net: "tcp", Err: err})
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// What the text of a Refusal begins with.
const (
	notFound = "Function not found" // the server does not have the function
	tooOld   = "unknown command"    // before Redis 7.0
	readOnly = refusing + "READONLY "
	refusing = "it refuses: " // a server that does not work now
)

// refusals are what a server's errors begin with, and what they are. Any other one is a server that
// does not work now: LOADING, READONLY, CLUSTERDOWN, OOM, ...
var refusals = []struct {
	begins string
	kind   error
}{
	{functions.CodeArg + " ", ErrArgument},
	{functions.CodeJoin + " ", ErrArgument},
	{functions.CodeOption + " ", ErrLibrary}, // it is older
	{functions.CodeFull + " ", ErrLineFull},
	{functions.CodeType + " ", ErrNotALock},
	{functions.CodeServer + " ", ErrDenied},
	{"unknown command 'SENTINEL'", ErrArgument}, // the address is no Sentinel's
	{notFound, ErrLibrary},
	{tooOld, ErrLibrary},
	{"NOPERM ", ErrDenied},
	{"NOAUTH ", ErrDenied},
	{"WRONGPASS ", ErrDenied},
	{"AUTH ", ErrDenied},
	{"invalid username-password", ErrDenied},
}

// Classify maps an error of rueidis to one of ours; nil stays nil. The end of the caller's context
// stays what it is.
func Classify(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil && isContext(err) {
		return err
	}
	if rueidis.IsParseErr(err) || rueidis.IsRedisNil(err) { // an answer, but not one of ours
		return malformed(err)
	}
	text, _, refused := strings.Cut(err.Error(), "\n")
	if answer, ok := rueidis.IsRedisErr(err); ok {
		text = answer.Error()
	} else if !refused || !errors.Is(err, rueidis.ErrNoCache) { // of a connection that was to track keys
		return unanswered(err)
	}
	for _, r := range refusals {
		if strings.HasPrefix(text, r.begins) {
			err = &Refusal{r.kind, text}
			if r.begins == functions.CodeServer+" " { // it was stopped in the middle
				err = Uncertain(err)
			}
			return err
		}
	}
	return &Refusal{ErrUnreachable, refusing + text}
}

// malformed is the error of a call whose answer no function of the contract gives.
func malformed(answer any) error {
	return Uncertain(&Refusal{ErrLibrary, fmt.Sprintf("its reply is not of contract 2: %v", answer)})
}

// refused returns the refusal that an error is of, or nil.
func refused(err error) *Refusal {
	var refusal *Refusal
	_ = errors.As(err, &refusal)
	return refusal
}

// refuses reports whether err is of a refusal whose text begins so.
func refuses(err error, begins string) bool {
	refusal := refused(err)
	return refusal != nil && strings.HasPrefix(refusal.Text, begins)
}

// Unknown reports whether a call may have been done although it failed: its request may have left,
// and no answer came, or the answer says that it was stopped in the middle.
func Unknown(err error) bool {
	var partly *uncertain
	var network *net.OpError
	notSent := errors.As(err, &network) && network.Op == "dial"
	return errors.As(err, &partly) || !notSent && refused(err) == nil
}

// Full reports whether the server has no memory for a call: it may have it for one that needs none.
func Full(err error) bool { return refuses(err, refusing+"OOM ") }

// Uncertain is err of a call that may have been done, in part or by an earlier try.
func Uncertain(err error) error { return &uncertain{err} }

type uncertain struct{ error }

func (e *uncertain) Unwrap() error { return e.error }

var lasting = regexp.MustCompile(`(?i)^(noperm|unknown (sub)?command|syntax error)|tracking`)

// Lasting reports whether a refusal of a command that is not ours will be the same the next time:
// an ACL, a proxy, or a server that does not have it. A server that is starting, or was demoted,
// will do it later.
func Lasting(err error) bool {
	answer, ok := rueidis.IsRedisErr(err)
	return ok && lasting.MatchString(answer.Error()) || errors.Is(err, rueidis.ErrNoCache)
}
