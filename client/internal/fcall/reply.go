// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Decode reads the answer to a call. It notices a server that is a replica now.
func (c *Caller) Decode(ctx context.Context, call *Call, result rueidis.RedisResult) (
	Reply, error) {
	message, err := result.ToMessage()
	if err == nil {
		c.Heard()
		return decodeReply(call, &message)
	}
	err = Classify(ctx, err)
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrArgument) {
		c.Heard()
	}
	// A name in the DNS, or a proxy, may lead to the primary. In a Cluster, or behind Sentinel, rueidis finds it.
	if refuses(err, readOnly) && c.Redis.Mode() == rueidis.ClientModeStandalone {
		c.Demoted()
	}
	return Reply{}, err
}

// decodeReply reads one integer, or an array whose first integer is 0 for a refusal and for nothing
// else. It ignores what a later version appends.
func decodeReply(call *Call, message *rueidis.RedisMessage) (r Reply, err error) {
	var d decoder
	if n, problem := message.ToInt64(); problem == nil {
		r = d.plain(call, n)
	} else if d.values, err = message.ToArray(); err == nil {
		r = d.array(call)
	}
	if d.wrong || err != nil {
		kept := *message // message itself stays on the stack
		return Reply{}, malformed(&kept)
	}
	return r, nil
}

// plain reads the yes of a call that asked for no more than a token, or 1.
func (d *decoder) plain(call *Call, n int64) Reply {
	r := Reply{Yes: true}
	switch call.Verb {
	case Acquire, Wait:
		r.Fence, r.Top = n, n
	case Renew:
		r.Fence = n
	}
	if n < 1 || r.Fence == 0 && n > 1 || call.several() || call.Verb == Inspect || call.Verb == Holders {
		d.wrong = true
	}
	return r
}

func (d *decoder) array(call *Call) (r Reply) {
	switch first := d.integer(0); {
	case call.Verb == Holders:
		r.Page = &Page{Next: first}
		for i := 1; i < len(d.values); i += 4 {
			r.Page.Holders = append(r.Page.Holders,
				Holder{Slot: d.integer(i), Owner: d.text(i + 1), Fence: d.integer(i + 2), Remaining: d.millis(i + 3)})
		}
		d.wrong = d.wrong || first != 0 && first <= call.From
	case call.Verb == Inspect:
		r = Reply{Yes: first == 1, Holder: d.text(1), Holds: d.integer(2), Fence: d.integer(3),
			Remaining: d.millis(4), Waiters: d.integer(5)}
		r.Why, r.Reason, _ = strings.Cut(d.text(6), " ")
		d.wrong = d.wrong || first != 0 && first != 1
	case first == 0:
		r = Reply{Remaining: d.millis(1), Holder: d.text(2), Waiters: d.integer(3)}
		r.Why, r.Reason, _ = strings.Cut(d.text(4), " ")
		if r.Why == functions.WhyDone {
			r.Value = d.text(5)
		} else if call.Verb == Wait {
			r.ServerMS, r.Fence, r.Subscribers = d.integer(5), d.integer(6), d.integer(7)
		}
	case first != 1 || !call.several():
		d.wrong = true
	case call.Verb == Break:
		r = Reply{Yes: true, Holder: d.text(1), Fence: d.integer(2)}
	case call.Verb == Release:
		r = Reply{Yes: true, Holds: d.integer(1)}
	default:
		r = Reply{Yes: true, Fence: d.integer(1), Top: d.integer(1)}
		n := d.integer(2)
		if call.Hold == "" { // else it is the owner's holds
			r.Top += n - 1
		}
		d.wrong = d.wrong || r.Fence < 1 || n < 1 || r.Top < r.Fence
	}
	return r
}

// decoder reads an array and notes what is not as the contract says. A word of why has, behind the first
// blank, the reason of a break.
type decoder struct {
	values []rueidis.RedisMessage
	wrong  bool
}

func (d *decoder) integer(i int) int64 { return place(d, i, (*rueidis.RedisMessage).ToInt64) }

func (d *decoder) text(i int) string { return place(d, i, (*rueidis.RedisMessage).ToString) }

func place[T any](d *decoder, i int, read func(*rueidis.RedisMessage) (T, error)) (value T) {
	if i < len(d.values) {
		if v, err := read(&d.values[i]); err == nil {
			return v
		}
	}
	d.wrong = true
	return value
}

// millis is a time of the server's; negative: there is none. A plain string of another service may
// have one that no Duration can hold.
func (d *decoder) millis(i int) time.Duration {
	return time.Duration(max(-1, min(d.integer(i), functions.MaxTTL*100))) * time.Millisecond
}
