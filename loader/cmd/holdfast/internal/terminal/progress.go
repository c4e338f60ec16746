package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	patience = time.Second // what is done by then needs no progress
	refresh  = 200 * time.Millisecond
)

// Progress shows on a terminal what a long command is at, in one line that goes at the end.
type Progress struct {
	mu   sync.Mutex
	text string
	stop chan struct{}
	done sync.WaitGroup
}

// Watch starts it. It shows nothing before a second has passed, and nothing anywhere but on a
// terminal.
func Watch(w io.Writer) *Progress {
	p := &Progress{stop: make(chan struct{})}
	if Is(w) {
		p.done.Go(func() { p.run(w) })
	}
	return p
}

// Say replaces the text.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

// End takes the line away. It may be called twice.
func (p *Progress) End() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	p.done.Wait()
}

func (p *Progress) run(w io.Writer) {
	wait := time.NewTimer(patience)
	defer wait.Stop()
	shown := false
	for {
		select {
		case <-p.stop:
			if shown {
				fmt.Fprint(w, "\r\x1b[K")
			}
			return
		case <-wait.C:
			p.mu.Lock()
			text := p.text
			p.mu.Unlock()
			if text != "" {
				fmt.Fprint(w, "\r\x1b[K", text)
				shown = true
			}
			wait.Reset(refresh)
		}
	}
}
