// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// A frame is what stands on the screen, line by line, down to the last one that is not empty.
type frame [][]uv.Cell

// play runs the command in a terminal, and draws the shots.
func (s scene) play(cmd *exec.Cmd) ([]byte, error) {
	cmd.Env = append(cmd.Environ(), "TERM=xterm-256color", "COLORTERM=", "NO_COLOR=")
	cmd.Stderr = io.Discard // logs
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(s.rows), Cols: uint16(s.columns)})
	if err != nil {
		return nil, err
	}
	screen, written := vt.NewEmulator(s.columns, s.rows), make(chan []byte)
	go io.Copy(terminal, screen) // what a terminal answers when it is asked
	go func() {
		defer close(written)
		for {
			part := make([]byte, 4096)
			n, err := terminal.Read(part)
			written <- part[:n]
			if err != nil { // EIO, when the command has ended
				return
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Kill() // if it has not ended
		for range written {
		}
		_, _ = cmd.Wait(), terminal.Close()
	}()

	var frames []frame
	for _, shot := range s.shots {
		if _, err := io.WriteString(terminal, shot.keys); err != nil {
			return nil, err
		}
		for end, more := time.After(3*time.Minute), true; !strings.Contains(screen.String(), shot.until); {
			var part []byte
			select {
			case part, more = <-written:
				_, _ = screen.Write(part) // it never fails
			case <-end:
				more = false
			}
			if !more {
				return nil, fmt.Errorf("%s did not show %q:\n%s", s.title, shot.until, screen)
			}
		}
		frames = append(frames, s.frame(screen))
	}
	return s.svg(frames), nil
}

func (s scene) frame(screen *vt.Emulator) frame {
	lines := make(frame, 1+strings.Count(strings.TrimRight(screen.String(), " \n"), "\n"))
	for y := range lines {
		for x := range s.columns {
			cell := *screen.CellAt(x, y)
			cell.Content = cmp.Or(cell.Content, " ")
			lines[y] = append(lines[y], cell)
		}
	}
	return lines
}
