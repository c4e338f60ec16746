// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judge compares what two sides did. It remembers how far they were apart at the most.
type judge struct {
	apart  time.Duration
	tokens map[string][2]int64 // the last of each lock
}

// slack is by how many ms times may differ: they were noted apart, and looked at apart.
func (j *judge) slack() int64 { return 2*j.apart.Milliseconds() + 2 }

// compare returns the first difference, or nothing.
func (j *judge) compare(st step, a, b seen) string {
	j.apart = max(j.apart, a.to.Sub(a.from), a.to.Sub(b.from), b.to.Sub(a.from), b.to.Sub(b.from))
	for i := range a.streams {
		if i == control {
			continue
		}
		if !j.same(relaxed(st, a.streams[i]), relaxed(st, b.streams[i])) {
			return fmt.Sprintf("connection %d got\n  %s\n  %s", i, show(a.streams[i]), show(b.streams[i]))
		}
	}
	for _, key := range locks {
		if diff := j.fields(key, a.keys[key], b.keys[key]); diff != "" {
			return diff
		}
	}
	return ""
}

func (j *judge) fields(key string, a, b map[string]any) string {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, inA := a[name]
		y, inB := b[name]
		x, y = unpacked(name, x), unpacked(name, y)
		if inA != inB || !j.same(x, y) {
			return fmt.Sprintf("%s: field %s is\n  %s\n  %s", key, name, show(a[name]), show(b[name]))
		}
	}
	x, y := token(a["fence"]), token(b["fence"])
	if x == 0 || y == 0 {
		return ""
	}
	if last, known := j.tokens[key]; known && cmp.Compare(x, last[0]) != cmp.Compare(y, last[1]) {
		return fmt.Sprintf("%s: the token went from %d to %d, and from %d to %d", key, last[0], x, last[1], y)
	}
	j.tokens[key] = [2]int64{x, y}
	return ""
}

// same compares values. Numbers that are times may differ by the slack.
func (j *judge) same(a, b any) bool {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return ok && j.near(x, y)
	case loose:
		y, ok := b.(loose)
		return ok && abs(int64(x)-int64(y)) <= j.slack()
	case run:
		y, ok := b.(run)
		return ok && abs(int64(x)-int64(y)) <= j.slack()*1000
	case string:
		y, ok := b.(string)
		return ok && j.sameText(x, y)
	case failure:
		y, ok := b.(failure)
		return ok && x == y
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, j.same)
	case push:
		y, ok := b.(push)
		return ok && slices.EqualFunc(x, y, j.same)
	case table:
		y, ok := b.(table)
		return ok && slices.EqualFunc(x, y, j.same)
	}
	return a == b
}

var number = regexp.MustCompile(`\d+`)

func (j *judge) sameText(a, b string) bool {
	if a == b {
		return true
	}
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	if len(x) != len(y) || number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") {
		return false
	}
	for i := range x {
		n, err := strconv.ParseInt(x[i], 10, 64)
		m, err2 := strconv.ParseInt(y[i], 10, 64)
		if x[i] != y[i] && (err != nil || err2 != nil || !j.near(n, m)) {
			return false
		}
	}
	return true
}

// near compares numbers: those as great as a time in ms or us are one.
func (j *judge) near(a, b int64) bool {
	switch least := min(a, b); {
	case a == b:
		return true
	case least > 1e15:
		return abs(a-b) <= j.slack()*1000
	case least > 1e12:
		return abs(a-b) <= j.slack()
	}
	return false
}

type (
	loose int64 // what is left of a lease, in ms
	run   int64 // how many tokens there are, if nobody asked for so many: one for each us since a moment
)

// relaxed marks the numbers of replies that are what is left of something. The functions' replies
// are known by their shapes.
func relaxed(st step, v any) any {
	switch v := v.(type) {
	case int64:
		if st.has("PTTL") && v > 0 && v < 1e12 {
			return loose(v)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = relaxed(st, v[i])
		}
		at := 0
		switch {
		case (len(v) == 5 || len(v) == 6 || len(v) == 8) && v[0] == int64(0): // refused, or a value
			at = 1
		case len(v) == 7: // inspect
			at = 4
		}
		for i := 4; len(v)%4 == 1 && i < len(v); i += 4 { // holders
			if left, ok := v[i].(int64); ok && left > 0 {
				out[i] = loose(left)
			}
		}
		if at > 0 {
			if left, ok := v[at].(int64); ok && left > 0 {
				out[at] = loose(left)
			}
		}
		if len(v) == 3 && v[0] == int64(1) {
			if tokens, ok := v[2].(int64); ok && !slices.Contains(blocks, strconv.FormatInt(tokens, 10)) {
				out[2] = run(tokens)
			}
		}
		return out
	}
	return v
}

// The packed fields of functions/holdfast.lua: how many doubles, and how many numbers of two bytes.
const (
	lineDoubles  = 6
	moreDoubles  = 8
	entryDoubles = 4
	entryShorts  = 2
	crowdDoubles = 3
	slotDoubles  = 5
	slotShorts   = 1
	turn         = 3 // how long holders had the lock: that is real time
)

// unpacked is what a packed field says; of any other it is the text.
func unpacked(name string, v any) any {
	text, _ := v.(string)
	doubles, shorts := 0, 0
	switch {
	case name == "state" && len(text) >= 8*(lineDoubles+moreDoubles):
		doubles = lineDoubles + moreDoubles
	case name == "state" && len(text) >= 8*lineDoubles:
		doubles = lineDoubles
	case strings.HasPrefix(name, "w:") && len(text) >= 8*entryDoubles+2*entryShorts:
		doubles, shorts = entryDoubles, entryShorts
	case name == "crowd" && len(text) >= 8*crowdDoubles:
		doubles = crowdDoubles
	case strings.HasPrefix(name, "h:") && len(text) >= 8*slotDoubles+2*slotShorts:
		doubles, shorts = slotDoubles, slotShorts
	default:
		return v
	}
	out := []any{}
	for i := range doubles {
		n := math.Float64frombits(binary.LittleEndian.Uint64([]byte(text[8*i:])))
		switch {
		case name == "state" && i == turn:
		case n == math.Trunc(n) && math.Abs(n) < 1<<60:
			out = append(out, int64(n))
		default:
			out = append(out, fmt.Sprint(n))
		}
	}
	for i := range shorts {
		out = append(out, int64(binary.LittleEndian.Uint16([]byte(text[8*doubles+2*i:]))))
	}
	return append(out, text[8*doubles+2*shorts:])
}

func token(v any) int64 {
	text, _ := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func show(v any) string { return fmt.Sprintf("%.900s", fmt.Sprintf("%#v", v)) }

func abs(n int64) int64 { return max(n, -n) }
