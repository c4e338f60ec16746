// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastasynq_test

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/client"
	holdfastasynq "github.com/holdfast-go/holdfast/client/adapter/asynq"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(ctx context.Context, c *client.Client, redis asynq.RedisClientOpt) {
	err := holdfastasynq.Run(ctx, c, "scheduler", func() (holdfastasynq.Scheduler, error) {
		s := asynq.NewScheduler(redis, nil)
		_, err := s.Register("@every 1h", asynq.NewTask("report", nil))
		return s, err
	})
	_ = err
}

var _ = page
