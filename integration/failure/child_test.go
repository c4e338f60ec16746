package failure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// fencedWrite is the resource's side of fencing: a write with a token lower than one it has seen is
// refused.
const fencedWrite = `local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1`

func writeFenced(ctx context.Context, redis rueidis.Client, key string, fence int64, value string) (bool, error) {
	n, err := redis.Do(ctx, redis.B().Eval().Script(fencedWrite).Numkeys(1).Key(key).Arg(fmt.Sprint(fence), value).Build()).AsInt64()
	return n == 1, err
}

// holder is a process that holds a lock.
const holder = "holder"

type job struct {
	Addr, Name     string
	Lease, MinHold time.Duration
}

// hold takes a lock, says 'held', and answers each line: 'look' with what it believes, 'cause' with
// why the lock ended, 'write KEY' with whether the fenced write was done. It ends with its input.
func hold(p *reexec.Parent) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	option := rueidis.ClientOption{InitAddress: []string{j.Addr}}
	c, err := client.Open(option, client.Config{Lease: j.Lease, Label: "child"})
	if err != nil {
		return err
	}
	l, err := c.TryAcquire(context.Background(), j.Name, client.WithMinHold(j.MinHold))
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	p.Say("held")
	for {
		line, err := p.Hear()
		if err != nil {
			return nil
		}
		verb, key, _ := strings.Cut(line, " ")
		switch verb {
		case "look":
			p.Say("remaining", l.Remaining())
		case "cause":
			<-l.Context().Done()
			p.Say(context.Cause(l.Context()))
		case "write":
			done, err := writeFenced(context.Background(), redis, key, l.Fence(), "of the child")
			p.Say("written", done, err)
		}
	}
}

// spawn starts a process that holds a lock.
func (b *bed) spawn(name string, lease time.Duration) *reexec.Child {
	b.TB.Helper()
	c := reexec.Spawn(b.TB, holder, job{Addr: b.D.Nodes()[0].Addr, Name: name, Lease: lease})
	c.Hear("held")
	return c
}
