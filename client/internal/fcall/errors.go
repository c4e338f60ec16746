package fcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

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

// Refusal is an error that the server answered.
type Refusal struct {
	Kind    error
	Text    string // in the server's words
	partial bool   // something may have been done
}

func (e *Refusal) Error() string { return e.Kind.Error() + ": " + e.Text }

// Unwrap returns the kind.
func (e *Refusal) Unwrap() error { return e.Kind }

// failure is a call without an answer. A time-out of rueidis is not the end of the caller's
// context, and must not look like one.
type failure struct{ err error }

func (e *failure) Error() string { return ErrUnreachable.Error() + ": " + e.err.Error() }

func (e *failure) Unwrap() []error {
	if isContext(e.err) {
		return []error{ErrUnreachable}
	}
	return []error{ErrUnreachable, e.err}
}

// NotConnected is the error of a call that was not sent, because of err.
func NotConnected(err error) error { return &failure{&net.OpError{Op: "dial", Net: "tcp", Err: err}} }

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Classify maps an error of rueidis to one of ours; nil stays nil. The end of the caller's context
// stays what it is.
func Classify(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil && isContext(err) {
		return err
	}
	answer, ok := rueidis.IsRedisErr(err)
	if !ok && rueidis.IsParseErr(err) { // an answer, of a type that no function of ours has
		return &Refusal{Kind: ErrLibrary, Text: err.Error() + hint(anyNode), partial: true}
	}
	if !ok {
		return &failure{err}
	}
	text := answer.Error()
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case functions.CodeArg:
		// this client never sends one: the library is older
		if strings.HasPrefix(text, functions.CodeArg+" wrong number of arguments") {
			return &Refusal{Kind: ErrLibrary, Text: text + hint(anyNode)}
		}
		return &Refusal{Kind: ErrArgument, Text: text}
	case functions.CodeJoin:
		return &Refusal{Kind: ErrArgument, Text: text}
	case functions.CodeFull:
		return &Refusal{Kind: ErrLineFull, Text: text}
	case functions.CodeType:
		return &Refusal{Kind: ErrNotALock, Text: text}
	case functions.CodeServer:
		return &Refusal{Kind: ErrDenied, Text: text, partial: true}
	case "NOPERM", "NOAUTH", "WRONGPASS":
		return &Refusal{Kind: ErrDenied, Text: text}
	}
	switch {
	case strings.HasPrefix(text, "Function not found"):
		return &Refusal{Kind: ErrLibrary, Text: text + hint(anyNode)}
	case strings.HasPrefix(text, "unknown command"):
		return &Refusal{Kind: ErrLibrary, Text: text + "; Redis 7.0 or later is needed"}
	case strings.HasPrefix(text, "AUTH "), strings.HasPrefix(text, "invalid username-password"):
		return &Refusal{Kind: ErrDenied, Text: text}
	}
	// LOADING, READONLY, CLUSTERDOWN, OOM, ...
	return &Refusal{Kind: ErrUnreachable, Text: refusing + text}
}

const refusing = "it refuses: "

// classify is Classify for an answer to a function, which may tell that the server is a replica now.
func (c *Caller) classify(ctx context.Context, err error) error {
	err = Classify(ctx, err)
	var refusal *Refusal
	if errors.As(err, &refusal) && strings.HasPrefix(refusal.Text, refusing+"READONLY ") {
		c.Demoted()
	}
	return err
}

// answered reports whether an error, or none, is an answer of the server.
func answered(err error) bool {
	return err == nil || errors.Is(err, ErrBusy) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotReplicated)
}

// Unknown reports whether a call may have been done although it failed: its request may have left,
// and no answer came, or the answer says that it was stopped in the middle.
func Unknown(err error) bool {
	var earlier *uncertain
	if errors.As(err, &earlier) {
		return true
	}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.partial
	}
	var dial *net.OpError
	return !errors.As(err, &dial) || dial.Op != "dial"
}

// uncertain is the error of a call that was repeated: an earlier try may have been done.
type uncertain struct{ error }

func (e *uncertain) Unwrap() error { return e.error }

// Lasting reports whether a refusal of a command that is not ours will be the same the next time:
// an ACL, a proxy, or a server that does not have it. A server that is starting, or was demoted,
// will do it later.
func Lasting(err error) bool {
	if errors.Is(err, rueidis.ErrNoCache) {
		return true
	}
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	text := strings.ToLower(answer.Error())
	return strings.HasPrefix(text, "noperm") || strings.HasPrefix(text, "unknown command") ||
		strings.HasPrefix(text, "unknown subcommand") || strings.HasPrefix(text, "syntax error") || strings.Contains(text, "tracking")
}

func malformed(values []rueidis.RedisMessage) error {
	return fmt.Errorf("%w: its reply is not of contract 1: %v", ErrLibrary, values)
}
