// SPDX-License-Identifier: Apache-2.0

package tracking_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// told is an invalidation as rueidis hands it over.
func told(keys ...string) (messages []rueidis.RedisMessage) {
	for _, key := range keys {
		b := append(make([]byte, 7), '$')
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(key))), key...)
		var m rueidis.RedisMessage
		if err := m.CacheUnmarshalView(b); err != nil {
			panic(err)
		}
		messages = append(messages, m)
	}
	return messages
}

type cache struct {
	*tracking.Cache
	t *testing.T
}

// in runs a test in virtual time, with a cache that is on.
func in(t *testing.T, slotted bool, test func(c *cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cache{tracking.New(), t}
		c.Slotted = slotted
		c.Switch(true)
		test(c)
	})
}

// keep keeps an answer of the key, as a tracked call does.
func (c *cache) keep(key string, kind tracking.Kind, value any, lifetime time.Duration) {
	c.t.Helper()
	q := c.Notice(key)
	require.NotNil(c.t, q)
	c.Heard()
	c.Keep(q, kind, value, time.Now(), lifetime)
}

func (c *cache) answer(key string, kind tracking.Kind) any {
	value, _, _ := c.Answer(key, kind)
	return value
}

func TestAnAnswerIsKeptFromTheSecondQuestionOn(t *testing.T) {
	in(t, false, func(c *cache) {
		_, _, q := c.Answer("a", tracking.Refusal)
		require.Nil(t, q, "nobody asked before: not worth tracking")
		c.Notice("a")
		_, _, q = c.Answer("a", tracking.Refusal)
		require.NotNil(t, q)
		c.Heard()
		c.Keep(q, tracking.Refusal, "busy", time.Now(), time.Minute)
		time.Sleep(400 * time.Millisecond)
		value, age, q := c.Answer("a", tracking.Refusal)
		require.Equal(t, "busy", value)
		require.Equal(t, 400*time.Millisecond, age)
		require.Nil(t, q, "nothing is to be asked")
		require.Nil(t, c.answer("a", tracking.State), "of another kind")
		require.Nil(t, c.answer("b", tracking.Refusal), "of another key")
	})
}

func TestAnAnswerIsDropped(t *testing.T) {
	for what, drop := range map[string]func(c *cache){
		"by its own lifetime":   func(*cache) { time.Sleep(800 * time.Millisecond) },
		"by a change of ours":   func(c *cache) { c.Changed("a", true) },
		"by news of its key":    func(c *cache) { c.Invalidated(told("x", "a")) },
		"by a lost connection":  func(c *cache) { c.Invalidated(nil) },
		"by a server's silence": func(*cache) { time.Sleep(time.Second + 1) },
	} {
		t.Run(what, func(t *testing.T) {
			in(t, false, func(c *cache) {
				lifetime := 800 * time.Millisecond
				if what == "by a server's silence" {
					lifetime = time.Hour
				}
				c.keep("a", tracking.Refusal, "busy", lifetime)
				require.Equal(t, "busy", c.answer("a", tracking.Refusal))
				drop(c)
				require.Nil(t, c.answer("a", tracking.Refusal))
			})
		})
	}
}

func TestNewsOfOtherKeysChangesNothing(t *testing.T) {
	in(t, false, func(c *cache) {
		c.keep("a", tracking.Refusal, "busy", time.Minute)
		c.Invalidated(told("b", "aa", ""))
		c.Changed("b", true)
		require.Equal(t, "busy", c.answer("a", tracking.Refusal))
	})
}

// In an outage no news is no good news: what is kept is believed for a second after the server was
// last heard.
func TestABoundedAge(t *testing.T) {
	in(t, false, func(c *cache) {
		c.keep("a", tracking.Refusal, "busy", time.Hour)
		for range 10 {
			time.Sleep(900 * time.Millisecond)
			c.Heard()
		}
		require.Equal(t, "busy", c.answer("a", tracking.Refusal), "the server answers")
		time.Sleep(time.Second)
		require.Equal(t, "busy", c.answer("a", tracking.Refusal))
		time.Sleep(time.Millisecond)
		require.Nil(t, c.answer("a", tracking.Refusal))
		c.Heard()
		require.Equal(t, "busy", c.answer("a", tracking.Refusal), "a lost connection would have dropped it")
	})
}

// In Cluster one node says nothing of the others, and a redirected call loses its tracking.
func TestABoundedAgeInCluster(t *testing.T) {
	in(t, true, func(c *cache) {
		c.keep("a", tracking.Refusal, "busy", time.Hour)
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			c.Heard()
		}
		require.Nil(t, c.answer("a", tracking.Refusal))
	})
}

// The news of a change can come before the answer to what was asked before it.
func TestAnAnswerThatIsOlderThanTheNewsIsNotKept(t *testing.T) {
	in(t, false, func(c *cache) {
		for _, change := range []func(){func() { c.Invalidated(told("a")) }, func() { c.Changed("a", true) }, func() { c.Invalidated(nil) }} {
			q := c.Notice("a")
			change()
			c.Keep(q, tracking.Refusal, "busy", time.Now(), time.Minute)
			require.Nil(t, c.answer("a", tracking.Refusal))
		}
		q := c.Notice("a")
		c.Heard()
		c.Keep(q, tracking.Refusal, "busy", time.Now(), time.Minute)
		require.Equal(t, "busy", c.answer("a", tracking.Refusal))
	})
}

func TestNothingIsKeptWhileItIsOff(t *testing.T) {
	in(t, false, func(c *cache) {
		q := c.Notice("a")
		c.Switch(false)
		require.False(t, c.On())
		c.Keep(q, tracking.Refusal, "busy", time.Now(), time.Minute)
		require.Nil(t, c.answer("a", tracking.Refusal))
		require.Nil(t, c.Notice("b"))
		c.Switch(true)
		c.keep("a", tracking.Refusal, "busy", time.Minute)
		require.Equal(t, "busy", c.answer("a", tracking.Refusal))
	})
}

// Whoever watches is notified of the changes of its key, and of those that may have been one.
func TestWatchedKeysNotify(t *testing.T) {
	in(t, false, func(c *cache) {
		var changed []string
		watch := func(key, as string) (stop func()) {
			return c.Watch(key, func() {
				c.Changed(key, true) // it is called without the mutex
				changed = append(changed, as)
			})
		}
		expect := func(want ...string) {
			t.Helper()
			require.ElementsMatch(t, want, changed)
			changed = nil
		}
		c.Invalidated(nil)
		one, two, three := watch("a", "one"), watch("b", "two"), watch("b", "three")
		c.Invalidated(told("a", "c"))
		expect("one")
		c.Invalidated(told("b"))
		expect("two", "three")
		c.Invalidated(nil)
		expect("one", "two", "three")
		two()
		two()
		c.Invalidated(told("b"))
		expect("three")
		three()
		one()
		c.Invalidated(told("a", "b"))
		c.Invalidated(nil)
		expect()
		watch("a", "its next owner")
		one() // late
		c.Invalidated(told("a"))
		expect("its next owner")
	})
}

func TestItsMemoryIsBounded(t *testing.T) {
	in(t, false, func(c *cache) {
		const names = 12_000
		known := 0
		for i := range names {
			c.keep(fmt.Sprint(i), tracking.State, "free", time.Minute)
		}
		for i := range names {
			if c.answer(fmt.Sprint(i), tracking.State) != nil {
				known++
			}
		}
		require.LessOrEqual(t, known, 10_000)
		require.Greater(t, known, 9_000, "most are remembered: who goes round more names than that asks for few")
	})
}
