// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastgocron_test

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(c *client.Client, report func(context.Context) error) {
	locker, err := holdfastgocron.NewLocker(c, 54*time.Second)
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	s.NewJob(gocron.DurationJob(time.Minute), locker.Task(report), gocron.WithName("report"))
	_ = err
}

var _ = page
