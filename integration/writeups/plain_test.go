package writeups

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// plain are the commands that naive locks are made of.
type plain struct {
	t     *testing.T
	ctx   context.Context
	redis rueidis.Client
}

func (s *shop) commands(option rueidis.ClientOption) plain {
	s.t.Helper()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(s.t, err)
	s.t.Cleanup(redis.Close)
	return plain{s.t, s.ctx, redis}
}

func (p plain) do(words ...string) rueidis.RedisResult {
	return p.redis.Do(p.ctx, p.redis.B().Arbitrary(words...).Build())
}

// yes runs a command that answers OK, or nothing, or a number.
func (p plain) yes(words ...string) bool {
	p.t.Helper()
	reply, err := p.do(words...).ToMessage()
	if rueidis.IsRedisNil(err) {
		return false
	}
	require.NoError(p.t, err)
	if n, err := reply.AsInt64(); err == nil {
		return n > 0
	}
	return true
}

// lock is SET NX PX.
func (p plain) lock(key, value string, lease time.Duration) bool {
	p.t.Helper()
	return p.yes("SET", key, value, "NX", "PX", milliseconds(lease))
}

// unlock is the release in Lua that compares the value.
func (p plain) unlock(key, value string) bool {
	p.t.Helper()
	return p.yes("EVAL", "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0", "1", key, value)
}

func (p plain) del(key string) bool { p.t.Helper(); return p.yes("DEL", key) }

func (p plain) get(key string) string {
	p.t.Helper()
	value, err := p.do("GET", key).ToString()
	if !rueidis.IsRedisNil(err) {
		require.NoError(p.t, err)
	}
	return value
}

func (p plain) number(key string) int {
	p.t.Helper()
	n, err := strconv.Atoi(p.get(key))
	require.NoError(p.t, err)
	return n
}

func (p plain) set(key string, n int) {
	p.t.Helper()
	require.True(p.t, p.yes("SET", key, strconv.Itoa(n)))
}

// add changes a number in two steps, as something that only a lock can guard.
// Below zero it does not go: that is errSoldOut.
func (p plain) add(ctx context.Context, key string, change int) error {
	n, err := p.redis.Do(ctx, p.redis.B().Get().Key(key).Build()).AsInt64()
	if err != nil {
		return err
	}
	if n+int64(change) < 0 {
		return errSoldOut
	}
	return p.redis.Do(ctx, p.redis.B().Set().Key(key).Value(strconv.FormatInt(n+int64(change), 10)).Build()).Error()
}

var errSoldOut = errors.New("sold out")

// ttl is what is left of a key's time; negative: no key, or no end.
func (p plain) ttl(key string) time.Duration {
	p.t.Helper()
	ms, err := p.do("PTTL", key).AsInt64()
	require.NoError(p.t, err)
	return time.Duration(ms) * time.Millisecond
}

// expired blocks until the key is gone.
func (p plain) expired(key string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return !p.yes("EXISTS", key) }, soon, time.Millisecond)
}

// calls is how often the server ran a command.
func (p plain) calls(command string) int {
	p.t.Helper()
	info, err := p.do("INFO", "commandstats").ToString()
	require.NoError(p.t, err)
	found := regexp.MustCompile(`(?m)^cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	require.NoError(p.t, err)
	return n
}
