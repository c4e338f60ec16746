package simulation

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// history keeps the last events of each lock, and those that concern all of them. It is guarded by
// the observer's mutex.
type history struct {
	began  time.Time
	serial int
	events map[string][]event // by lock; "": faults
	digest uint64             // of all events, to compare runs
	trace  io.Writer          // gets all events; nil: nobody does
}

type event struct {
	serial int
	at     time.Duration
	text   string
}

// pid is in owner strings, between the host and the client. It is another one in each run.
var pids = strings.NewReplacer(fmt.Sprintf(":%d:", os.Getpid()), ":", fmt.Sprintf(" pid %d", os.Getpid()), "")

const kept = 90 // events of a lock

func newHistory() *history { return &history{began: time.Now(), events: map[string][]event{}} }

func (h *history) add(name, who, format string, args ...any) {
	h.serial++
	text := pids.Replace(fmt.Sprintf("%-10s ", who) + fmt.Sprintf(format, args...))
	at := time.Since(h.began)
	if h.trace != nil {
		fmt.Fprintf(h.trace, "%14.6fs  %-5s %s\n", at.Seconds(), name, text)
	}
	list := append(h.events[name], event{h.serial, at, text})
	if len(list) > 2*kept {
		list = slices.Delete(list, 0, kept)
	}
	h.events[name] = list
	for _, b := range []byte(text) {
		h.digest = (h.digest ^ uint64(b)) * 1099511628211
	}
	h.digest = (h.digest ^ uint64(at)) * 1099511628211
}

// of returns what happened to a lock, and the faults of that time.
func (h *history) of(name string) string {
	list := slices.Clone(h.events[name])
	if len(list) > kept {
		list = list[len(list)-kept:]
	}
	if name != "" && len(list) > 0 {
		from := list[0].serial
		for _, e := range h.events[""] {
			if e.serial > from || len(list) < kept/2 {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, func(a, b event) int { return a.serial - b.serial })
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%14.6fs  %s\n", e.at.Seconds(), e.text)
	}
	return b.String()
}
