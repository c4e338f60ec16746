// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"context"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// prompt is a question to the user. The zero value asks nothing.
type prompt struct {
	label string
	text  string // what was typed
	done  func(m *model, text string) tea.Cmd
}

// answer takes a key while something is asked.
func (m *model) answer(msg tea.KeyPressMsg) tea.Cmd {
	switch p := &m.prompt; msg.String() {
	case "esc":
		m.prompt = prompt{}
	case "enter":
		asked := *p
		m.prompt = prompt{}
		return asked.done(m, asked.text)
	case "backspace":
		_, last := utf8.DecodeLastRuneInString(p.text)
		p.text = p.text[:len(p.text)-last]
	default:
		p.text += msg.Text
	}
	return nil
}

type (
	askMsg struct { // to break a lock, as it stands
		lock locks.Lock
		err  error
	}
	brokenMsg string // what is to be said of it
)

const nothingBroken = "nothing was broken"

// beginBreak looks at the chosen lock: what is on the screen may be old, and does not say all.
func (m *model) beginBreak() tea.Cmd {
	if m.at == "" {
		return nil
	}
	name := m.at
	return m.call(func(ctx context.Context) tea.Msg {
		lock, err := m.cfg.Series.View.Lock(ctx, name)
		return askMsg{lock, err}
	})
}

// call asks the server for as long as a look may take.
func (m *model) call(do func(context.Context) tea.Msg) tea.Cmd {
	whole, within := m.ctx, m.cfg.Series.Within
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(whole, within)
		defer cancel()
		return do(ctx)
	}
}

// ask wants a reason, and then the consent. Only the owner that was seen loses the lock.
func (m *model) ask(a askMsg) tea.Cmd {
	seen := a.lock
	switch {
	case a.err != nil:
		m.said = a.err.Error()
		return nil
	case !seen.Held && !seen.Kept():
		m.said, _ = m.cfg.Outcome(seen, locks.Broken{})
		return nil
	}
	view, outcome := m.cfg.Series.View, m.cfg.Outcome
	question, agrees := m.cfg.Question(seen)
	m.prompt = prompt{label: "to break it, give the reason, which the holder is told: ", done: func(m *model, reason string) tea.Cmd {
		if strings.TrimSpace(reason) == "" {
			m.said = nothingBroken
			return nil
		}
		m.prompt = prompt{label: question, done: func(m *model, answer string) tea.Cmd {
			if !agrees(answer) {
				m.said = nothingBroken
				return nil
			}
			return m.call(func(ctx context.Context) tea.Msg {
				broken, err := view.Break(ctx, seen, reason, false)
				if err != nil {
					return brokenMsg(err.Error())
				}
				text, _ := outcome(seen, broken)
				return brokenMsg(text)
			})
		}}
		return nil
	}}
	return nil
}
