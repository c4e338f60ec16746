package main

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

// The exit codes of "run" that are not the command's own. As those of flock(1) they are sysexits.h's;
// runTooLong is timeout(1)'s.
const (
	runConflict    = 1
	runUsage       = 64
	runUnreachable = 69
	runInternal    = 70
	runLost        = 75
	runDenied      = 77
	runConfig      = 78
	runTooLong     = 124
)

const runExitCodes = `Exit codes:
  the command's own; 128 + n if signal n ended it, or ended the wait for the lock
  1    the lock was not had: --no-wait, or the end of --wait. -E chooses another. --once: 0, or what -E says
  64   wrong usage
  69   the server cannot be reached; the command was not started
  70   another error; the command was not started
  75   the lock was lost, or the server was silent until its lease was almost over: the command was ended
  77   the server refuses the user; the command was not started
  78   the library is missing or too old, or the key is no lock; the command was not started
  124  --max-hold: the command was ended
  126  the command cannot be run
  127  the command was not found
`

// runCode is the exit code of an error before the command was started.
func runCode(err error, conflict int) int {
	var usage usageError
	var reply *rueidis.RedisError
	switch {
	case errors.As(err, &usage), errors.Is(err, client.ErrArgument):
		return runUsage
	case errors.Is(err, client.ErrBusy), errors.Is(err, client.ErrTimeout):
		return conflict
	case errors.Is(err, client.ErrDenied):
		return runDenied
	case errors.Is(err, client.ErrInvalid), errors.Is(err, errSentinel):
		return runConfig
	case errors.Is(err, client.ErrUnreachable):
		return runUnreachable
	case errors.As(err, &reply) && denied(reply.Error()):
		return runDenied
	case errors.Is(err, errConnecting):
		return runUnreachable
	}
	return runInternal
}

func denied(reply string) bool {
	word, _, _ := strings.Cut(reply, " ")
	return word == "WRONGPASS" || word == "NOAUTH" || word == "NOPERM"
}

// lostCode is the exit code when the command was ended, or ended after the lock was lost.
func lostCode(why error) int {
	if errors.Is(why, client.ErrMaxHold) {
		return runTooLong
	}
	return runLost
}
