// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// printable escapes what a terminal could take for more than text: names come from others.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// short is a duration in the two units that matter.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func clock(t time.Time) string { return t.Format(time.DateTime + " UTC") }

func leaseText(l locks.Lock) string {
	if l.RemainingMS < 0 {
		return "no end"
	}
	return short(l.Remaining())
}

func tokenText(l locks.Lock) string {
	if l.Token == 0 {
		return "-"
	}
	return strconv.FormatInt(l.Token, 10)
}

// head is what every JSON object of a command about locks begins with.
type head struct {
	Command  string   `json:"command"`
	ExitCode int      `json:"exit_code"`
	Errors   []string `json:"errors,omitempty"`
}

// head also keeps the exit code: the process ends with the one that JSON names.
func (a *app) head(code int, errs ...error) head {
	if code == exitFailed && a.interrupted() {
		code = exitInterrupted
	}
	a.told = &code
	h := head{Command: a.cfg.command, ExitCode: code}
	for _, err := range errs {
		for _, each := range apart(err) {
			h.Errors = append(h.Errors, each.Error())
		}
	}
	return h
}

func (a *app) printJSON(object any) {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(object) // a.stdout keeps the error
}

// nonNil is a list that JSON shows as one even if it is empty.
func nonNil[T any](list []T) []T { return append([]T{}, list...) }

// advise adds to an error what can be done about it, for a user of that role. nil stays nil.
func (a *app) advise(err error, role string) error {
	if err == nil {
		return nil
	}
	said := func(words string) bool { return strings.Contains(err.Error(), words) }
	switch {
	case said("--sentinel-master"): // it stands there already
	case said(noMaster):
		return fmt.Errorf("%w (check --sentinel-master)", err)
	case said(noSentinel):
		return fmt.Errorf("%w (%s)", err, hintSentinel)
	case errors.Is(err, client.ErrDenied) && (said("WRONGPASS") || said("NOAUTH")):
		return fmt.Errorf("%w (check %s)", err, a.cfg.credentials())
	case errors.Is(err, client.ErrLibrary):
		return fmt.Errorf("%w (\"holdfast load\" brings the library)", err)
	case said("NOPERM") && said("cluster|"):
		return fmt.Errorf("%w (\"holdfast acl --for %s --cluster\" prints the rights that it takes)", err, role)
	case errors.Is(err, client.ErrDenied), said("NOPERM"):
		return fmt.Errorf("%w (\"holdfast acl --for %s\" prints the rights that it takes)", err, role)
	}
	return err
}
