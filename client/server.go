package client

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
)

// server is what locks are asked for: one deployment, or several that vote. Its methods are those of
// fcall.Caller.
type server interface {
	Acquire(ctx context.Context, copies fcall.Copies, key string, r fcall.Request) (fcall.Reply, error)
	AcquireTracked(ctx context.Context, key string, r fcall.Request) (fcall.Reply, error)
	Wait(ctx context.Context, key string, r fcall.Request) (fcall.Reply, error)
	Renew(ctx context.Context, copies fcall.Copies, key string, r fcall.Renewal) (fcall.Reply, error)
	Release(ctx context.Context, key, owner, hold string, last int64) (fcall.Reply, error)
	Inspect(ctx context.Context, key string) (fcall.Standing, error)
	InspectTracked(ctx context.Context, key string) (fcall.Standing, error)
	Break(ctx context.Context, key, reason string) (fcall.Standing, error)
	Version(ctx context.Context) (string, error)
	Heal(ctx context.Context, err error) (repeat bool)
	Silent() time.Duration
	Home(slot uint16) string
	batch(n int, copies fcall.Copies) pipeline
}

// pipeline is a batch of calls.
type pipeline interface {
	Renew(tracked bool, key string, r fcall.Renewal)
	Look(tracked bool, key string)
	Leave(key, owner, hold string, fence int64)
	Send(ctx context.Context) []fcall.Outcome
}

type one struct{ *fcall.Caller }

func (s one) batch(n int, copies fcall.Copies) pipeline { return s.NewBatch(n, copies) }

type several struct{ *quorum.Servers }

func (s several) batch(n int, copies fcall.Copies) pipeline { return s.NewBatch(n, copies) }
