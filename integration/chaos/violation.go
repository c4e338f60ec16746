package main

import (
	"fmt"
	"strings"
)

// violation is something that must not be.
type violation struct {
	Rule string // exclusion, token, register, hang, stuck, leak, growth, died, re-entry, model
	Lock string
	At   stamp
	Text string
}

func (v violation) String() string {
	if v.Lock == "" {
		return v.Rule + ": " + v.Text
	}
	return fmt.Sprintf("%s of %s: %s", v.Rule, v.Lock, v.Text)
}

func rules(list []violation) string {
	var names []string
	for _, v := range list {
		names = append(names, v.Rule)
	}
	return strings.Join(names, " ")
}

func (h *hold) String() string {
	return fmt.Sprintf("%s.%d (%s, token %d, owner %s)", h.Process, h.Worker, h.Level, h.Token,
		h.Owner)
}
