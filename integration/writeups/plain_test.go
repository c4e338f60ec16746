package writeups

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/testbed"
)

// plain are the commands that naive locks are made of.
type plain struct{ *testbed.Bed }

func (p plain) do(words ...string) rueidis.RedisResult {
	return p.Redis.Do(p.Ctx, p.Redis.B().Arbitrary(words...).Build())
}

// yes runs a command that answers OK, or nothing, or a number.
func (p plain) yes(words ...string) bool {
	p.TB.Helper()
	reply, err := p.do(words...).ToMessage()
	if rueidis.IsRedisNil(err) {
		return false
	}
	require.NoError(p.TB, err)
	if n, err := reply.AsInt64(); err == nil {
		return n > 0
	}
	return true
}

// lock is SET NX PX.
func (p plain) lock(key, value string, lease time.Duration) bool {
	p.TB.Helper()
	return p.yes("SET", key, value, "NX", "PX", milliseconds(lease))
}

// unlock is the release in Lua that compares the value.
func (p plain) unlock(key, value string) bool {
	p.TB.Helper()
	return p.yes("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", "1", key, value)
}

func (p plain) del(key string) bool { p.TB.Helper(); return p.yes("DEL", key) }

func (p plain) get(key string) string {
	p.TB.Helper()
	value, err := p.do("GET", key).ToString()
	if !rueidis.IsRedisNil(err) {
		require.NoError(p.TB, err)
	}
	return value
}

func (p plain) number(key string) int {
	p.TB.Helper()
	n, err := strconv.Atoi(p.get(key))
	require.NoError(p.TB, err)
	return n
}

func (p plain) set(key string, n int) {
	p.TB.Helper()
	require.True(p.TB, p.yes("SET", key, strconv.Itoa(n)))
}

// add changes a number in two steps, as something that only a lock can guard.
// Below zero it does not go: that is errSoldOut.
func (p plain) add(ctx context.Context, key string, change int) error {
	n, err := p.Redis.Do(ctx, p.Redis.B().Get().Key(key).Build()).AsInt64()
	if err != nil {
		return err
	}
	if n+int64(change) < 0 {
		return errSoldOut
	}
	return p.Redis.Do(ctx, p.Redis.B().Set().Key(key).Value(strconv.FormatInt(n+int64(change), 10)).Build()).Error()
}

var errSoldOut = errors.New("sold out")

// ttl is what is left of a key's time; negative: no key, or no end.
func (p plain) ttl(key string) time.Duration {
	p.TB.Helper()
	ms, err := p.do("PTTL", key).AsInt64()
	require.NoError(p.TB, err)
	return time.Duration(ms) * time.Millisecond
}

// expired blocks until the key is gone.
func (p plain) expired(key string) {
	p.TB.Helper()
	p.Eventually("the key is gone", func() bool { return !p.yes("EXISTS", key) })
}

// calls is how often the server ran a command.
func (p plain) calls(command string) int {
	p.TB.Helper()
	info, err := p.do("INFO", "commandstats").ToString()
	require.NoError(p.TB, err)
	found := regexp.MustCompile(`(?m)^cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(p.TB, err)
	return n
}
