// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/queue"
)

// A client's queue is the queue machine itself (client/internal/queue). All that it can be like is
// numbered, and a state of the model keeps the number. Each number has the way of events that led there
// first: a machine goes that way again for each new event. What follows is remembered.
//
// What a machine does depends on the order of the tokens that it knows and hears of, and not on what they
// are. So a state of the model keeps the tokens, and a cue names others that are in the same order.

// cue is an event for a queue machine. Its clock stands still: what deadlines do is what End does.
type cue struct {
	kind    queue.Kind
	other   bool // of another owner than the queue's last one
	late    bool
	confirm bool
	unknown bool
	over    bool
	hot     bool
	try     bool
	place   uint8 // End: of the waiter
	token   int64
}

// act is an action of a queue machine.
type act struct {
	op    queue.Op
	fresh bool // of a call: its owner is a new one
	other bool // of an undo: for another owner than the queue's last one
	token int64
}

// known are the tokens that a queue machine knows: that up to which grants are void, and that of the
// grant that it has or keeps.
type known[T any] struct{ Above, Has T }

// likeness is one thing that a queue machine can be like.
type likeness struct {
	state   queue.State
	waiting int
	pauses  bool
	tokens  known[int64]
	from    uint16
	by      cue
	next    map[cue]*stride
}

// stride is where a cue leads from there. tokens are as in the likeness that it began in.
type stride struct {
	to     uint16
	acts   []act
	tokens known[int64]
}

type queues struct {
	all     []likeness
	numbers map[string]uint16
}

// machines are all that any client's queue machine was like in an exploration. Number 0 is the empty one.
var machines = noQueues()

func noQueues() *queues {
	q := &queues{numbers: map[string]uint16{}}
	q.number(born(), 0, cue{})
	return q
}

// puppet is a queue machine that goes along a way of events.
type puppet struct {
	queue.Machine
	waiters []*queue.Waiter
	owner   string // the last one
	owners  int
	no      uint64 // of the last call
}

var queueTerms = &lease.Terms{Length: tickTime}

func born() *puppet {
	p := &puppet{}
	p.Fresh = func(string) string {
		p.owners++
		p.owner = strconv.Itoa(p.owners)
		return p.owner
	}
	return p
}

// at returns a machine that is like a number.
func (q *queues) at(number uint16) *puppet {
	if number == 0 {
		return born()
	}
	p := q.at(q.all[number].from)
	p.play(q.all[number].by)
	return p
}

// play lets an event happen.
func (p *puppet) play(c cue) (acts []act) {
	e := queue.Event{Kind: c.kind, Late: c.late, Confirm: c.confirm, Unknown: c.unknown, Over: c.over,
		Now: 1, No: p.no, Owner: p.owner, Token: c.token, Top: c.token}
	switch {
	case c.other:
		e.Owner = "another"
	case c.kind == queue.Enter:
		e.Waiter = &queue.Waiter{Request: queue.Request{Terms: queueTerms, Try: c.try}, Hot: c.hot}
		p.waiters = append(p.waiters, e.Waiter)
	case c.kind == queue.End:
		e.Waiter = p.waiters[c.place]
	}
	last := p.owners
	for _, a := range p.Step(e) {
		x := act{op: a.Op, token: a.Token}
		switch a.Op {
		case queue.Acquire, queue.Wait, queue.Renew:
			p.no, x.fresh = a.No, p.owners > last
		case queue.Undo:
			x.other = a.Owner == "another"
		case queue.Serve, queue.Fail:
			p.waiters = slices.DeleteFunc(p.waiters, func(w *queue.Waiter) bool { return w == a.Waiter })
		}
		acts = append(acts, x)
	}
	return acts
}

// tokens are those that the machine knows. Runs of tokens are not modelled, so a grant has one.
func (p *puppet) tokens() known[int64] {
	m := reflect.ValueOf(&p.Machine).Elem()
	if p.State() == queue.Held {
		return known[int64]{Has: m.FieldByName("h").FieldByName("Token").Int()}
	}
	return known[int64]{max(0, m.FieldByName("above").Int()), m.FieldByName("token").Int()}
}

// idle are the fields that only choose the words of an error, how many tokens are asked for, or whether what
// is given back is given back more than once; those that count; and tokens that are the ones known, if a
// grant has one.
var idle = []string{"due", "heardAt", "others", "doubt", "Again", "no", "No", "answers", "began", "first", "top", "Top"}

// ofPlace are those that end with a place.
var ofPlace = []string{"above", "owes"}

// portrait is all that matters of what the machine is like, whatever it has: a field that is not known here
// is taken as it is. Who has heard an answer has heard one for ever.
func (p *puppet) portrait() string {
	m := reflect.ValueOf(&p.Machine).Elem()
	k := p.tokens()
	tokens := []int64{0, k.Above, k.Has}
	slices.Sort(tokens)
	tokens = slices.Compact(tokens)
	no, answers, calling := m.FieldByName("no").Uint(), m.FieldByName("answers").Uint(), m.FieldByName("calling").Bool()
	text := fmt.Sprint(answers > 0, calling &&
		m.FieldByName("call").FieldByName("Waiter").Pointer() == m.FieldByName("fifo").FieldByName("first").Pointer())
	picture := func(name string, v reflect.Value) {
		switch {
		case slices.Contains(idle, name), p.State() == queue.Held && slices.Contains(ofPlace, name):
		case v.Kind() == reflect.Int64:
			text += fmt.Sprint(" ", v.Int() < 0, slices.Index(tokens, max(0, v.Int())))
		case v.Kind() == reflect.String:
			text += fmt.Sprint(" ", v.String() != "")
		default:
			text += fmt.Sprint(" ", v)
		}
	}
	fields(m, picture)
	for _, w := range p.waiters {
		x := reflect.ValueOf(w).Elem()
		text += fmt.Sprint("; ", w.Try)
		if x.FieldByName("heard").Uint() == answers {
			text += fmt.Sprint(" ", x.FieldByName("fails"), calling && x.FieldByName("since").Uint() == no)
		}
	}
	return text
}

// fields calls f for each field that is no pointer, function or list, also for those of structs.
func fields(v reflect.Value, f func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		switch x := v.Field(i); x.Kind() {
		case reflect.Pointer, reflect.Func, reflect.Slice, reflect.Array, reflect.Interface:
		case reflect.Struct:
			if v.Type().Field(i).Name != "call" {
				fields(x, f)
			}
		default:
			f(v.Type().Field(i).Name, x)
		}
	}
}

func (q *queues) number(p *puppet, from uint16, by cue) uint16 {
	picture := p.portrait()
	n, known := q.numbers[picture]
	if !known {
		n = uint16(len(q.all))
		q.numbers[picture] = n
		q.all = append(q.all, likeness{p.State(), p.Waiting(), p.Pauses(), p.tokens(), from, by, map[cue]*stride{}})
	}
	return n
}

// step lets an event happen to a client's machine, of which the state knows the tokens. It returns what the
// machine wants done; token is what a token of an act is.
func (c *Client) step(e cue, heard Token) (acts []act, token func(int64) Token) {
	l := &machines.all[c.Queue]
	e.token = between(l.tokens, c.known, heard)
	s := l.next[e]
	if s == nil {
		p := machines.at(c.Queue)
		s = &stride{acts: p.play(e), tokens: p.tokens()}
		s.to = machines.number(p, c.Queue, e)
		machines.all[c.Queue].next[e] = s
	}
	was, of := c.known, l.tokens
	token = func(t int64) Token {
		switch t {
		case 0:
			return 0
		case e.token:
			return heard
		case of.Has:
			return was.Has
		}
		return was.Above
	}
	c.Queue, c.known = s.to, known[Token]{token(s.tokens.Above), token(s.tokens.Has)}
	return s.acts, token
}

// between returns a number that is to those of a machine as a token is to those that they stand for.
func between(of known[int64], are known[Token], t Token) int64 {
	low, high := int64(0), int64(1)<<62
	for i, is := range [...]Token{are.Above, are.Has} {
		switch n := [...]int64{of.Above, of.Has}[i]; {
		case t == 0 || t == is:
			return n * int64(min(t, 1))
		case n == 0:
		case is < t:
			low = max(low, n)
		default:
			high = min(high, n)
		}
	}
	if high == 1<<62 {
		return low + 1<<32
	}
	return low + (high-low)/2
}
