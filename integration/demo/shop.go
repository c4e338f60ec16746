// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// A shop is the resource that the lock guards: a number in stock and a list of
// orders. It is deliberately one that cannot help itself: the stock is read,
// something takes time, and the stock is written.
//
// It checks fencing tokens: look and sell refuse a caller with
// a lower token than it has seen. That is the half of the protection that a
// lock cannot give, against holders that do not know yet that they are late.
type shop struct {
	redis  rueidis.Client
	name   string // of the sale, and of its lock
	lock   string // the lock's key
	stock  string
	token  string // the highest token that was here
	orders string // the token of each order; "0" without a lock
}

var errRefused = errors.New("refused: a higher token was here")

var (
	//go:embed look.lua
	lookSource string
	//go:embed sell.lua
	sellSource string

	lookScript = rueidis.NewLuaScript(lookSource)
	sellScript = rueidis.NewLuaScript(sellSource)
)

func newShop(redis rueidis.Client, prefix, name string) *shop {
	key := func(part string) string { return prefix + name + ":" + part }
	return &shop{redis: redis, name: name, lock: prefix + name, stock: key("stock"), token: key("token"), orders: key("orders")}
}

// lifetime is when the keys vanish of a shop that nobody closes.
const lifetime = time.Hour

// open puts n into stock.
func (s *shop) open(ctx context.Context, n int) error {
	return s.redis.Do(ctx, s.redis.B().Set().Key(s.stock).Value(strconv.Itoa(n)).Ex(lifetime).Build()).Error()
}

// close removes every key of the sale, also after an interrupt.
func (s *shop) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.redis.Do(ctx, s.redis.B().Del().Key(s.lock, s.stock, s.token, s.orders).Build()).Error()
}

// look reads the stock as the holder of the lock with this token, or fails with
// errRefused. Without a lock the token is 0, which nothing refuses.
func (s *shop) look(ctx context.Context, fence int64) (int, error) {
	n, err := lookScript.Exec(ctx, s.redis, []string{s.stock, s.token}, []string{strconv.FormatInt(fence, 10)}).AsInt64()
	if err == nil && n < 0 {
		err = errRefused
	}
	return int(n), err
}

// sell writes the stock that is left and an order as the holder of the lock
// with this token, or fails with errRefused.
func (s *shop) sell(ctx context.Context, fence int64, left int) error {
	n, err := sellScript.Exec(ctx, s.redis, []string{s.stock, s.token, s.orders},
		[]string{strconv.FormatInt(fence, 10), strconv.Itoa(left)}).AsInt64()
	if err == nil && n == 0 {
		err = errRefused
	}
	return err
}

// books counts the orders, and reports whether their tokens only grew.
func (s *shop) books(ctx context.Context) (sold int, ordered bool, err error) {
	tokens, err := s.redis.Do(ctx, s.redis.B().Lrange().Key(s.orders).Start(0).Stop(-1).Build()).AsIntSlice()
	if err != nil {
		return 0, false, fmt.Errorf("read the orders: %w", err)
	}
	ordered = true
	for i := 1; i < len(tokens); i++ {
		ordered = ordered && tokens[i] > tokens[i-1]
	}
	return len(tokens), ordered, nil
}
