// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// fields are what a lock's hash has, and one that it has not.
var fields = []string{"owner", "until", "fence", "channel", "state", "holds", "w:1", "w:2", "w:3", "at:a", "at:b", "crowd", "h:1", "h:2", "other"}

// value is something for a field, that fits it or not.
func (s source) value(field, key string) string {
	if s.IntN(6) == 0 {
		return pick(s, odd...)
	}
	now := time.Now()
	switch field {
	case "until":
		return strconv.FormatInt(now.UnixMilli()+pick[int64](s, -1000, 600000), 10)
	case "fence":
		return pick(s, fenceOf(key), "1", "9007199254740991", "9007199252740990", strconv.FormatInt(now.UnixMicro()+pick[int64](s, -1e6, 20e6, 3600e6), 10))
	case "state":
		return s.state(now)
	case "holds":
		return pick(s, "2:h1", "2:h12:h2", "0:", "9:h1", "5:3:abc", "")
	case "w:1", "w:2", "w:3":
		asked := now.UnixMilli() + pick[int64](s, -60000, 0, 60000)
		who := pick(s, owners[:4]...)
		return pick(s, entry(asked, pick[float64](s, 0, 0, 500), "", "diff:c1", who), entry(asked, 0, "", "", who), entry(asked, 0, "2:h1", "diff:c2", "a"),
			entry(asked, -1, "", "", who), entry(asked, math.NaN(), "", "diff:c1", who), ">2", ">3", "<1", ">4503599627370495",
			entry(1, 0, "", "", ""))
	case "at:a", "at:b":
		return pick(s, "1", "2", "3", "4503599627370495", "h1", "h2", "h0")
	case "crowd":
		return string(packed(pick[float64](s, 1, 2, 3), float64(now.UnixMilli()), float64(now.UnixMilli()+600000))) + pick(s, "", "1", "11", "01", "2")
	case "h:1", "h:2":
		return string(packed(float64(now.UnixMilli()+pick[int64](s, -1000, 600000)), 5, 0, pick[float64](s, 0, 500, math.NaN()), 600000)) + "\x00\x00" + pick(s, owners[:4]...)
	case "channel":
		return pick(s, channels...)
	}
	return pick(s, owners...)
}

func packed(numbers ...float64) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return b
}

// entry is a waiter's, see functions/holdfast.lua.
func entry(asked int64, minimum float64, holds, channel, owner string) string {
	b := packed(60000, 1, float64(asked), minimum)
	b = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(b, uint16(len(holds))), uint16(len(channel)))
	return string(b) + holds + channel + owner
}

// state is a lock's.
func (s source) state(now time.Time) string {
	us, ms := float64(now.UnixMicro()), float64(now.UnixMilli())
	wrong := func(n float64) float64 {
		if s.IntN(30) == 0 {
			return pick(s, math.NaN(), math.Inf(1), -1, 1.5, 1<<60)
		}
		return n
	}
	b := packed(wrong(pick[float64](s, 0, 1, 2, 4503599627370490)), wrong(pick[float64](s, 0, 1, 2, 3, 5, 4503599627370496)),
		wrong(pick[float64](s, 0, 1, 2, 5000)), wrong(float64(s.IntN(3)*1000)), wrong(us+pick[float64](s, -1e6, 20e6, 3600e6)),
		wrong(ms+pick[float64](s, 0, 600000)))
	if s.IntN(2) == 0 {
		return string(b)
	}
	reason := pick(s, "", "a test")
	b = append(b, packed(wrong(pick[float64](s, 0, 0, 1, 2)), wrong(pick[float64](s, 0, 0, 60000)), wrong(pick(s, 0, ms-100, ms+600000)),
		wrong(pick(s, 0, 0, ms-100)), wrong(pick[float64](s, 60000, 600000)), wrong(us-1e6), wrong(pick(s, 0, ms-100, ms+600000)),
		wrong(float64(len(reason))))...)
	return string(b) + reason + pick(s, owners[:4]...)
}

// write is what somebody does who may write the key and knows what is in it.
func (s source) write(key string) []string {
	field := pick(s, fields...)
	soon := strconv.FormatInt(time.Now().UnixMilli()+pick[int64](s, -1000, 600000), 10)
	switch s.IntN(15) {
	case 0, 1, 2, 3, 4, 5:
		cmd := []string{"HSET", key}
		for range 1 + s.IntN(3) {
			cmd = append(cmd, field, s.value(field, key))
			field = pick(s, fields...)
		}
		return cmd
	case 6:
		return []string{"HDEL", key, field, pick(s, fields...)}
	case 7:
		return append([]string{"HDEL", key}, fields...)
	case 8:
		return []string{pick(s, "DEL", "UNLINK"), key}
	case 9:
		return []string{"DEL", locks[0], locks[1]}
	case 10:
		return append([]string{"SET", key, "foreign"}, pick(s, []string{}, []string{"NX", "PX", "600000"}, []string{"PXAT", soon}, []string{"KEEPTTL"})...)
	case 11:
		return []string{"PEXPIREAT", key, soon}
	case 12:
		return []string{"PEXPIRE", key, pick(s, "-5", "0", "600000")}
	case 13:
		return pick(s, []string{"INCRBY", key, "1"}, []string{"APPEND", key, "1"})
	}
	return []string{"SPUBLISH", pick(s, channels...), "hello"}
}
