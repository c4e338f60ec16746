package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// What a sample of a node's keys may cost.
const (
	page   = 1000
	pages  = 200
	sample = 1000
)

// keys looks at a sample of those under the prefix. Where locks have no prefix, any key may be
// somebody else's.
func (n *node) keys(ctx context.Context) {
	if n.opt.Prefix == "" || n.role != cluster.Primary {
		return
	}
	keys, err := n.some(ctx)
	if !n.sees("SCAN", err) || len(keys) == 0 {
		return
	}
	found := n.judge(ctx, keys)
	n.name("foreign-keys", found, "are no locks", "rename them, or give the locks another prefix (Config.Prefix)")
	n.name("keys-without-ttl", found, "have no TTL", "holdfast break, or DEL, when nobody uses them")
	n.name("plain-strings", found, "are strings", "nothing, while services move over from SET NX")
}

func (n *node) name(code string, found map[string][]string, are, mend string) {
	if keys := found[code]; len(keys) > 0 {
		n.find(code, mend, "of the keys under %q %d %s: %s", n.opt.Prefix, len(keys), are, examples(keys))
	}
}

func examples(keys []string) string {
	const most = 3
	var words []string
	for _, key := range keys[:min(most, len(keys))] {
		words = append(words, strconv.Quote(short(key)))
	}
	if len(keys) > most {
		words = append(words, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(words, ", ")
}

func (n *node) some(ctx context.Context) (keys []string, err error) {
	cursor := uint64(0)
	match := locks.Literal(n.opt.Prefix) + "*"
	for range pages {
		from := strconv.FormatUint(cursor, 10)
		got, err := n.do(ctx, "SCAN", from, "MATCH", match, "COUNT", strconv.Itoa(page)).AsScanEntry()
		if err != nil {
			return nil, err
		}
		keys = append(keys, got.Elements...)
		if cursor = got.Cursor; cursor == 0 || len(keys) >= sample {
			break
		}
	}
	return keys[:min(len(keys), sample)], nil
}

// judge sorts keys by the code of what is wrong with them. A key that is gone meanwhile, or moved, is
// right.
func (n *node) judge(ctx context.Context, keys []string) map[string][]string {
	var asks, inspects [][]string
	var hashes []string
	for _, key := range keys {
		asks = append(asks, []string{"TYPE", key}, []string{"PTTL", key})
	}
	found := map[string][]string{}
	note := func(code, key string) { found[code] = append(found[code], key) }
	said := n.doAll(ctx, asks)
	for i, key := range keys {
		kind, err1 := said[2*i].ToString()
		left, err2 := said[2*i+1].AsInt64()
		switch {
		case !n.sees("TYPE", moved(err1)) || !n.sees("PTTL", moved(err2)) || err1 != nil || err2 != nil:
		case kind == "none" || left == -2:
		case kind != "string" && kind != "hash":
			note("foreign-keys", key)
		case left == -1:
			note("keys-without-ttl", key)
		case kind == "string":
			note("plain-strings", key)
		}
		if kind == "hash" {
			hashes = append(hashes, key)
			inspects = append(inspects, []string{"FCALL_RO", functions.Inspect, "1", key})
		}
	}
	for i, result := range n.doAll(ctx, inspects) {
		reply, ok := rueidis.IsRedisErr(result.Error())
		if ok && strings.HasPrefix(reply.Error(), functions.CodeType) {
			note("foreign-keys", hashes[i])
		}
	}
	return found
}

// moved takes away the error of a key that is on its way to another node.
func moved(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		if _, is := reply.IsMoved(); is {
			return nil
		}
		if _, is := reply.IsAsk(); is {
			return nil
		}
	}
	return err
}
