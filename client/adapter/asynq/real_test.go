// SPDX-License-Identifier: Apache-2.0

package holdfastasynq_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"

	holdfastasynq "github.com/holdfast-go/holdfast/client/adapter/asynq"
)

// provider has one task.
type provider struct{}

func (provider) GetConfigs() ([]*asynq.PeriodicTaskConfig, error) {
	return []*asynq.PeriodicTaskConfig{{Cronspec: "@every 1s", Task: asynq.NewTask("mail", nil)}}, nil
}

// A PeriodicTaskManager whose lock is broken is shut down, and a new one is started when the process
// leads again.
func TestPeriodicTaskManager(t *testing.T) {
	c := open()
	defer c.Close()
	made := make(chan int, 10)
	enqueued := make(chan int, 1000)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	terms := 0
	go func() {
		ended <- holdfastasynq.Run(ctx, c, "manager", func() (holdfastasynq.Scheduler, error) {
			terms++
			term := terms
			made <- term
			return asynq.NewPeriodicTaskManager(asynq.PeriodicTaskManagerOpts{
				PeriodicTaskConfigProvider: provider{},
				RedisConnOpt:               asynq.RedisClientOpt{Addr: address},
				SchedulerOpts: &asynq.SchedulerOpts{
					LogLevel:        asynq.FatalLevel,
					PostEnqueueFunc: func(*asynq.TaskInfo, error) { enqueued <- term },
				},
			})
		})
	}()
	next := func(of <-chan int) int {
		select {
		case term := <-of:
			return term
		case err := <-ended:
			t.Fatalf("Run returned %v", err)
			return 0
		}
	}
	next(made)
	if term := next(enqueued); term != 1 {
		t.Errorf("term %d enqueued first", term)
	}
	if _, err := c.Break(t.Context(), "manager", "test"); err != nil {
		t.Fatal(err)
	}
	next(made) // the second manager exists once the first was shut down
	for len(enqueued) > 0 {
		<-enqueued
	}
	if term := next(enqueued); term != 2 {
		t.Errorf("term %d enqueued after the break", term)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}
