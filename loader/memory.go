// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// memory is what a node's library says of its memory, in the words of holdfast_memory; nil if it says
// nothing. FUNCTION LOAD REPLACE ends it. Where it cannot be carried over, guarded locks are not
// granted for a while, and no more than that.
type memory []string

// remembered asks for it, or gives the one of before to the library that was loaded: the node believes
// it only if it is the same process with the same replication id. Without one it lets a memory begin.
// holdfast_memory needs no key, and a loader's user may have none. But services that choose the server
// by a key (ElastiCache Serverless) refuse a call without one.
func remembered(ctx context.Context, node rueidis.Client, at cluster.Node, before memory) (memory, error) {
	call := func(keys ...string) (memory, error) {
		fcall := node.B().Fcall().Function(functions.Memory).Numkeys(int64(len(keys))).Key(keys...).Arg(before...).Build()
		m, err := node.Do(ctx, fcall).AsStrSlice()
		return m[:min(len(m), 3)], err // what a later library adds, the one of before would refuse
	}
	m, err := call()
	if _, replied := rueidis.IsRedisErr(err); !replied || hopeless(err) {
		return m, err
	}
	if m, again := call(keyAt(at.Slots)); again == nil {
		return m, nil
	}
	return nil, err
}

// together replaces the library and gives its memory to the new one in one transaction: a guarded lock that
// is asked for between two commands would have to wait. It reports whether both were done. If not, they are
// to be sent one after the other: the user may lack +multi +exec, or the service take no such transaction.
func together(ctx context.Context, node rueidis.Client, code string, m memory) bool {
	b := node.B()
	replies := node.DoMulti(ctx, b.Multi().Build(), b.FunctionLoad().Replace().FunctionCode(code).Build(),
		b.Fcall().Function(functions.Memory).Numkeys(0).Arg(m...).Build(), b.Exec().Build())
	done, err := replies[3].ToArray()
	return err == nil && len(done) == 2 && done[0].Error() == nil && done[1].Error() == nil
}

// hopeless reports whether a call with a key would fail as one without it did.
func hopeless(err error) bool {
	return strings.Contains(err.Error(), "NOPERM") || unknown(err)
}

// unknown reports whether there is no such function, as in a library from before it.
func unknown(err error) bool { return strings.Contains(err.Error(), "Function not found") }

// keyAt is a key that a primary with these slots takes. Without slots any is.
func keyAt(slots [][2]uint16) string {
	for i := 0; ; i++ {
		key := "holdfast-loader:" + strconv.Itoa(i)
		at := cluster.Slot(key)
		for _, s := range slots {
			if at >= s[0] && at <= s[1] {
				return key
			}
		}
		if len(slots) == 0 {
			return key
		}
	}
}

// forgotten is what a report says of a memory that was lost.
func forgotten(err error) string {
	if err == nil || unknown(err) {
		return ""
	}
	return fmt.Sprintf("its memory was not carried over, so guarded locks wait until it is old enough again: %v", err)
}
