package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// process is a child.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// startProcess starts a child; the caller must close or kill it.
func startProcess(o order) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	p.cmd.Stderr = &p.errors
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// hear blocks until the child says a line. A child that fails ends, so this does not block for ever.
func (p *process) hear() (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait() // so that its last words are complete
		return "", fmt.Errorf("%s child: %w: %s", p.cmd.Path, err, strings.TrimSpace(p.errors.String()))
	}
	return strings.TrimSpace(line), nil
}

// say writes a line to the child.
func (p *process) say(line string) error {
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

// kill ends the child with SIGKILL and blocks until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// close lets the child end by itself and blocks until it has.
func (p *process) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
