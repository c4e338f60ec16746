// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"encoding/binary"
	"errors"

	"github.com/redis/rueidis"
)

// message is one of a server's: an int64, a string, an error, a []any, or nil.
func message(value any) (m rueidis.RedisMessage) {
	if err := m.CacheUnmarshalView(encode(make([]byte, 7), value)); err != nil {
		panic(err)
	}
	return m
}

// encode appends a value as rueidis keeps it in its cache.
func encode(b []byte, value any) []byte {
	add := func(kind byte, n int64, text string) {
		b = append(binary.BigEndian.AppendUint64(append(b, kind), uint64(n)), text...)
	}
	switch v := value.(type) {
	case nil:
		add('_', 0, "")
	case int:
		add(':', int64(v), "")
	case int64:
		add(':', v, "")
	case string:
		add('$', int64(len(v)), v)
	case error:
		add('-', int64(len(v.Error())), v.Error())
	case []any:
		add('*', int64(len(v)), "")
		for _, part := range v {
			b = encode(b, part)
		}
	}
	return b
}

// refusal is an error that a server answered.
func refusal(text string) error {
	m := message(errors.New(text))
	return m.Error()
}
