// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strconv"
	"time"
)

// fields are some that a lock's hash has, and one that it has not. What the library makes of packed ones that
// do not fit is the contract's affair.
var fields = []string{"owner", "until", "fence", "channel", "holds", "at:a", "at:b", "other"}

// value is something for a field, that fits it or not.
func (s source) value(field string) string {
	if s.IntN(6) == 0 {
		return pick(s, odd...)
	}
	switch field {
	case "until":
		return strconv.FormatInt(time.Now().UnixMilli()+pick[int64](s, -1000, 600000), 10)
	case "channel":
		return pick(s, channels...)
	}
	return pick(s, owners...)
}

// write is what somebody does who may write the key and knows what is in it.
func (s source) write(key string) []string {
	field := pick(s, fields...)
	soon := strconv.FormatInt(time.Now().UnixMilli()+pick[int64](s, -1000, 600000), 10)
	switch s.IntN(14) {
	case 0, 1, 2, 3, 4, 5:
		cmd := []string{"HSET", key}
		for range 1 + s.IntN(3) {
			cmd = append(cmd, field, s.value(field))
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
		return append([]string{"SET", key, "foreign"}, pick(s, []string{}, []string{"NX", "PX", "600000"}, []string{"PXAT", soon})...)
	case 11:
		return []string{"PEXPIREAT", key, soon}
	case 12:
		return []string{"PEXPIRE", key, pick(s, "-5", "0", "600000")}
	}
	return []string{"SPUBLISH", pick(s, channels...), "hello"}
}
