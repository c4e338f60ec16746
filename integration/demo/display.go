package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A display shows a sale. On a terminal the last line is refreshed in place;
// elsewhere there are only lines, one a second.
type display struct {
	out    io.Writer
	live   bool
	drawn  bool // a line that is to be drawn over
	latest time.Time
}

// A status is how a sale stands.
type status struct {
	sold, stock, away int
	took              time.Duration
}

func newDisplay(f *os.File) *display {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &display{out: f, live: terminal, latest: time.Now()}
}

// say prints a line that stays.
func (d *display) say(format string, args ...any) {
	d.wipe()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// progress shows how the sale stands, in passing.
func (d *display) progress(s status) {
	switch {
	case d.live:
		d.wipe()
		fmt.Fprint(d.out, s)
		d.drawn = true
	case time.Since(d.latest) >= time.Second:
		d.latest = time.Now()
		fmt.Fprintln(d.out, s)
	}
}

// done shows how the sale ended.
func (d *display) done(s status) {
	d.say("%s", s)
	d.latest = time.Now()
}

func (d *display) wipe() {
	if d.drawn {
		fmt.Fprint(d.out, "\r\x1b[K")
		d.drawn = false
	}
}

// String is a bar that is full when all is sold, with what is sold too much
// behind its end.
func (s status) String() string {
	const width = 30
	full := min(width, s.sold*width/s.stock)
	over := max(0, s.sold-s.stock)
	text := fmt.Sprintf("  [%s%s]%s %4d of %d sold", strings.Repeat("#", full), strings.Repeat(".", width-full),
		strings.Repeat("!", min(width/2, over*width/s.stock)), s.sold, s.stock)
	if over > 0 {
		text += fmt.Sprintf(", %d too many", over)
	}
	return text + fmt.Sprintf(", %d turned away, %.1f s", s.away, s.took.Seconds())
}
