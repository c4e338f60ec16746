// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastcron_test

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/client"
	holdfastcron "github.com/holdfast-go/holdfast/client/adapter/cron"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(c *client.Client, report func(context.Context)) {
	once, err := holdfastcron.Once(c, "report", 54*time.Minute, nil)
	cron.New().AddJob("@hourly", cron.NewChain(once).Then(holdfastcron.Job(report)))
	_ = err
}

var _ = page
