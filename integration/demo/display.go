package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A display shows a sale. On a terminal the last line is refreshed in place;
// elsewhere a line shows it when nothing was said for a second.
type display struct {
	out    io.Writer
	live   bool
	drawn  bool // a line that is to be drawn over
	latest time.Time
}

func newDisplay(f *os.File) *display {
	info, err := f.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	return &display{out: f, live: terminal, latest: time.Now()}
}

// say prints a line that stays.
func (d *display) say(format string, args ...any) {
	d.wipe()
	d.latest = time.Now()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// progress shows how the sale stands, in passing.
func (d *display) progress(line string) {
	switch {
	case d.live:
		d.wipe()
		fmt.Fprint(d.out, line)
		d.drawn = true
	case time.Since(d.latest) >= time.Second:
		d.say("%s", line)
	}
}

func (d *display) wipe() {
	if d.drawn {
		fmt.Fprint(d.out, "\r\x1b[K")
		d.drawn = false
	}
}

func bar(sold, stock int) string {
	const width = 30
	full, over := min(width, sold*width/stock), max(0, sold-stock)
	text := fmt.Sprintf("  [%s%s]%s %4d of %d sold", strings.Repeat("#", full), strings.Repeat(".", width-full),
		strings.Repeat("!", min(width/2, over*width/stock)), sold, stock)
	if over > 0 {
		text += fmt.Sprintf(", %d too many", over)
	}
	return text
}
