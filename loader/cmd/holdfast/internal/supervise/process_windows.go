// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"
	"os/signal"
	"syscall"
)

// Windows has no signals to pass on: Ctrl-C reaches all programs of a console.
var (
	ends   = []os.Signal{os.Interrupt}
	passed []os.Signal
	pipes  []os.Signal
	jobs   []os.Signal
)

func notify(caught chan<- os.Signal, signals []os.Signal) {
	if len(signals) > 0 {
		signal.Notify(caught, signals...)
	}
}

// Shell is how a shell runs a text.
func Shell(text string) []string { return []string{"cmd", "/C", text} }

// Code is the exit code of who was interrupted.
func Code(os.Signal) int { return 130 }

// Interrupt does nothing: an exit code says it here.
func Interrupt() {}

// Shared is true on Windows: a command is of the same console.
func Shared() bool { return true }

func attributes(bool) *syscall.SysProcAttr { return nil }

func (p *process) pass(os.Signal, Hold) {}

// terminate kills: there is no way to ask.
func (p *process) terminate() { p.kill() }

func (p *process) kill() { _ = p.cmd.Process.Kill() }

func (p *process) killRest() {}

func (p *process) left() bool { return false }

func told(*os.ProcessState) bool { return false }

func status(state *os.ProcessState) int { return state.ExitCode() }

func interrupted(*os.ProcessState) bool { return false }
