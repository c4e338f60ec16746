package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

const caseCapacity = "acquire + release"

func capacity(quick bool) workload {
	return workload{
		Name: "capacity", Title: "What the server can do", Columns: []string{mPairs, mCommands, mInside},
		Note: "The commands that each library sends to take a free lock and give it back, as MONITOR shows them, sent again for many names through one " +
			"connection, 200 pairs at a time, so that the server has nothing to wait for. Pairs are for each second of the server's CPU time.",
		Cells: []cell{{
			Case:  caseCapacity,
			Takes: func(r rival) bool { return !r.Etcd },
			Run: func(ctx context.Context, w *world, r rival) (values, error) {
				s, err := w.redis(ctx)
				if err != nil {
					return nil, err
				}
				if err := s.loadBench(ctx); err != nil {
					return nil, err
				}
				commands, err := capture(ctx, s, r)
				if err != nil {
					return nil, err
				}
				return w.replay(ctx, s, r, commands, callsOf(quick))
			},
		}},
	}
}

// callsOf is how often commands are repeated.
func callsOf(quick bool) int {
	if quick {
		return 4000
	}
	return 100_000
}

// replay sends the commands of a pair for n names.
func (w *world) replay(ctx context.Context, s *site, r rival, commands [][]string, n int) (values, error) {
	c, err := rueidis.NewClient(s.place.option())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	before, err := w.account(s)
	if err != nil {
		return nil, err
	}
	if err := repeat(ctx, c, commands, n); err != nil {
		return nil, err
	}
	after, err := w.account(s)
	if err != nil {
		return nil, err
	}
	if left, err := c.Do(ctx, c.B().Dbsize().Build()).AsInt64(); err != nil || left != 0 {
		return nil, fmt.Errorf("%d locks were not given back by %q: %w", left, commands, err)
	}
	spent := after.sub(before)
	sent, inside := spent.split(r)
	return values{
		mPairs:    float64(n) / spent.CPU.Seconds(),
		mCommands: float64(sent) / float64(n),
		mInside:   float64(inside) / float64(n),
	}, nil
}

// repeat sends the commands n times, with another name for captureName each time. Any refusal is an
// error.
func repeat(ctx context.Context, c rueidis.Client, commands [][]string, n int) error {
	const batch = 200
	for from := 0; from < n; from += batch {
		var all rueidis.Commands
		for i := from; i < min(from+batch, n); i++ {
			name := fmt.Sprintf("captured-%07d", i)
			for _, command := range commands {
				all = append(all, renamed(c, command, name))
			}
		}
		for i, reply := range c.DoMulti(ctx, all...) {
			if err := reply.Error(); err != nil {
				return fmt.Errorf("%q: %w", commands[i%len(commands)], err)
			}
		}
	}
	return nil
}

// renamed is a command for another lock: the first word with captureName in it is the key.
func renamed(c rueidis.Client, command []string, name string) rueidis.Completed {
	words := make([]string, len(command))
	key := -1
	for i, word := range command {
		words[i] = strings.ReplaceAll(word, captureName, name)
		if key < 0 && words[i] != word {
			key = i
		}
	}
	if key < 0 {
		return c.B().Arbitrary(words...).Build()
	}
	return c.B().Arbitrary(words[:key]...).Keys(words[key]).Args(words[key+1:]...).Build()
}
