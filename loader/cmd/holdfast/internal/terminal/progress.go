// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	patience = time.Second // what is done by then needs no progress
	refresh  = 200 * time.Millisecond
)

// Progress shows on a terminal what a long command is at, in one line that goes at the end.
type Progress struct {
	text atomic.Value // a string
	stop context.CancelFunc
	done sync.WaitGroup
}

// Watch starts it. It shows nothing before a second has passed, and nothing anywhere but on a
// terminal.
func Watch(w io.Writer) *Progress {
	ctx, stop := context.WithCancel(context.Background())
	p := &Progress{stop: stop}
	if Is(w) {
		p.done.Go(func() { p.run(ctx, w) })
	}
	return p
}

// Say replaces the text.
func (p *Progress) Say(format string, args ...any) { p.text.Store(fmt.Sprintf(format, args...)) }

// End takes the line away. It may be called twice.
func (p *Progress) End() {
	p.stop()
	p.done.Wait()
}

func (p *Progress) run(ctx context.Context, w io.Writer) {
	wait := time.NewTimer(patience)
	defer wait.Stop()
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				fmt.Fprint(w, "\r\x1b[K")
			}
			return
		case <-wait.C:
			if text := p.text.Load(); text != nil {
				fmt.Fprint(w, "\r\x1b[K", text)
				shown = true
			}
			wait.Reset(refresh)
		}
	}
}
