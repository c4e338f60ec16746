package loader

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/functions"
)

// memory is what a node's library says of its memory, in the words of holdfast_memory; nil if it says
// nothing. FUNCTION LOAD REPLACE ends it. Where it cannot be carried over, because an ACL forbids it
// or the library before has no such function, guarded locks are not granted for a while, and no more
// than that.
type memory []string

func recall(ctx context.Context, node rueidis.Client) memory {
	m, _ := node.Do(ctx, node.B().Fcall().Function(functions.Memory).Numkeys(0).Build()).AsStrSlice()
	return m
}

// carry gives it to the library that was loaded, or, if there is none, lets a memory begin. The node
// believes it only if it is the same process with the same replication id as before.
func (m memory) carry(ctx context.Context, node rueidis.Client) {
	_ = node.Do(ctx, node.B().Fcall().Function(functions.Memory).Numkeys(0).Arg(m...).Build()).Error()
}
