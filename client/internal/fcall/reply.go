package fcall

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Reply is what the functions that take, renew and give back answer.
type Reply struct {
	Yes   bool  // ours, or given back
	Fence int64 // the token: ours, or for Wait the holder's
	Holds int64 // Yes: of this owner; 0: it has none any more
	Block int64 // Yes: how many tokens from Fence on are reserved

	Remaining   time.Duration // the holder's lease; negative: it has none
	Holder      string        // its owner string; "": nobody has the lock now
	Waiters     int64         // how many wait; for Wait the place in line, see functions/README.md
	ServerMS    int64         // Wait: the server's clock
	Subscribers int64         // Wait: how many hear the caller's channel at this server
	Again       time.Duration // Wait, of several servers: it is the caller's turn, ask again after this; 0: it is not
}

func decodeReply(values messages, err error) (r Reply, _ error) {
	if err != nil {
		return r, err
	}
	d := decoder{values: values}
	switch first := d.integer(0); {
	case first == 1 && len(values) == 2:
		r.Yes, r.Holds = true, d.integer(1)
	case first == 1:
		r.Yes, r.Fence, r.Holds, r.Block = true, d.integer(1), d.integer(3), d.integer(4)
	case first == 0:
		r.Remaining, r.Holder, r.Waiters = millis(d.integer(1)), d.text(2), d.integer(3)
		if len(values) > 4 {
			r.ServerMS, r.Fence, r.Subscribers = d.integer(4), d.integer(5), d.integer(6)
		}
	default:
		d.fail()
	}
	return r, d.err
}

// decodeLeft reads whether there was anything to give back.
func decodeLeft(values messages, err error) (left bool, _ error) {
	if err != nil {
		return false, err
	}
	d := decoder{values: values}
	switch d.integer(0) {
	case 0:
	case 1:
		left = true
	default:
		d.fail()
	}
	return left, d.err
}

// decodeFences reads the tokens of n locks, nil if they were not taken.
func decodeFences(values messages, n int) (fences []int64, _ error) {
	d := decoder{values: values}
	switch first := d.integer(0); {
	case first == 0:
		return nil, d.err
	case first != 1 || len(values) != n+2:
		return nil, malformed(values)
	}
	for i := range n {
		fences = append(fences, d.integer(i+2))
	}
	if d.err != nil {
		return nil, d.err
	}
	return fences, nil
}

// millis is a time of the server's; negative: there is none. A plain string of another service may have
// one that no Duration can hold.
func millis(n int64) time.Duration {
	return time.Duration(max(-1, min(n, functions.MaxTTL*100, math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

// Standing is what Inspect answers.
type Standing struct {
	Held      bool
	Owner     string
	Holds     int64
	Fence     int64
	Remaining time.Duration
	Waiters   int64
}

func decodeStanding(values messages, err error) (Standing, error) {
	if err != nil {
		return Standing{}, err
	}
	d := decoder{values: values}
	s := Standing{Held: d.integer(0) == 1, Owner: d.text(1), Holds: d.integer(2), Fence: d.integer(3),
		Remaining: millis(d.integer(4)), Waiters: d.integer(5)}
	return s, d.err
}

// decoder reads a flat reply and remembers the first thing that is not as the contract says.
type decoder struct {
	values []rueidis.RedisMessage
	err    error
}

func (d *decoder) integer(i int) int64 {
	if i < len(d.values) {
		if n, err := d.values[i].AsInt64(); err == nil {
			return n
		}
	}
	d.fail()
	return 0
}

func (d *decoder) text(i int) string {
	if i < len(d.values) {
		if s, err := d.values[i].ToString(); err == nil {
			return s
		}
	}
	d.fail()
	return ""
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = malformed(d.values)
	}
}
