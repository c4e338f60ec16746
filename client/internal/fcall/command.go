// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// TTL is a lease as the library takes it: milliseconds, rounded up; "" for none.
func TTL(lease time.Duration) string {
	return number(int64((lease + time.Millisecond - 1) / time.Millisecond))
}

func (call *Call) function() string {
	if call.Verb == Acquire && call.Hold != "" {
		return functions.AcquireReentrant
	}
	return string(call.Verb)
}

// args appends the arguments of a call. The plain cases of the library depend on this order.
func (call *Call) args(to []string) []string {
	switch call.Verb {
	case Acquire:
		to = append(to, call.Owner, call.TTL)
		if call.Hold != "" {
			to = append(to, call.Hold)
		}
		return call.wants(to)
	case Wait:
		to = option(append(to, call.Owner, call.TTL), functions.OptChannel, call.Channel)
		to = option(to, functions.OptMaxWait, number(call.MaxWait.Milliseconds()))
		return call.wants(option(to, functions.OptHold, call.Hold))
	case Renew:
		to = option(append(to, call.Owner, call.TTL), functions.OptFence, number(call.Fence))
		return option(option(to, functions.OptHold, call.Hold), functions.OptRaise, number(call.Raise))
	case Release:
		to = option(append(to, call.Owner), functions.OptHold, call.Hold)
		if call.All {
			to = append(to, functions.OptAll)
		}
		return option(to, functions.OptLast, number(call.Fence))
	case Finish:
		return append(to, call.Owner, call.Value, number(call.Keep.Milliseconds()))
	case Leave:
		to = option(append(to, call.Owner), functions.OptHold, call.Hold)
		return option(to, functions.OptFence, number(call.Fence))
	case Holders:
		return append(to, number(call.From))
	case Break:
		return option(option(to, functions.OptOwner, call.Owner), functions.OptReason, call.Reason)
	}
	return to
}

// wants appends the words about a new lock.
func (call *Call) wants(to []string) []string {
	switch {
	case call.Crowd > 0:
		to = append(to, functions.OptLimit, strconv.Itoa(call.Crowd))
	case call.Crowd < 0:
		to = append(to, functions.OptShared)
	case call.Tokens > 1:
		to = option(to, functions.OptTokens, number(call.Tokens))
	}
	to = option(option(to, functions.OptGuard, call.Guard), functions.OptMinHold, call.MinHold)
	if call.Valued {
		to = append(to, functions.OptValue)
	}
	return to
}

// several reports whether a yes to the call is an array.
func (call *Call) several() bool {
	switch call.Verb {
	case Acquire, Wait:
		return call.Hold != "" || call.Tokens > 1 || call.Crowd != 0
	case Release:
		return call.Hold != ""
	}
	return call.Verb == Break
}

func option(to []string, word, value string) []string {
	if value == "" {
		return to
	}
	return append(to, word, value)
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Command is the command of a call, without its tracking.
func (c *Caller) Command(call *Call) rueidis.Completed {
	var args [16]string // no call has more
	command := c.Redis.B().Fcall().Function(call.function()).Numkeys(1).Key(call.Key)
	return command.Arg(call.args(args[:0])...).Build()
}
