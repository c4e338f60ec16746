// SPDX-License-Identifier: Apache-2.0

// Package terminal prints for people: colours, tables and progress, where there is a terminal.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Output is where a command prints. It keeps the first error of a write, so that nothing that prints
// need look for one, and the command can tell at its end.
type Output struct {
	io.Writer
	Err     error
	Written bool // there was a write
}

func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.Written = true
	if o.Err == nil {
		o.Err = err
	}
	return n, err
}

// Is reports whether what is read or written there is a terminal.
func Is(stream any) bool {
	if out, ok := stream.(*Output); ok {
		stream = out.Writer
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colour is how a text is shown.
type Colour string

// The colours, as the terminal's theme has them.
const (
	Plain  Colour = ""
	Bold   Colour = "1"
	Dim    Colour = "2"
	Red    Colour = "31"
	Green  Colour = "32"
	Yellow Colour = "33"
)

// Painter colours text, or does not.
type Painter bool

// PainterFor colours what goes to a terminal, unless NO_COLOR is set (https://no-color.org) or the
// terminal is a dumb one.
func PainterFor(w io.Writer) Painter {
	return Painter(Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// Paint returns the text in the colour.
func (p Painter) Paint(c Colour, text string) string {
	if !p || c == Plain {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
