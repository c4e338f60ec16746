// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/client"
)

// Failure is how often calls failed in one way.
type Failure struct {
	Kind  string `json:"kind"` // one of those that KindOf names
	Count int64  `json:"count"`
	First string `json:"first"` // the text of the first
}

// kinds are the precise ones before those that they belong to.
var kinds = []struct {
	err  error
	name string
}{
	{context.Canceled, "no_answer"},
	{client.ErrNotReplicated, "not_replicated"},
	{client.ErrUnreachable, "unreachable"},
	{client.ErrTimeout, "timeout"},
	{client.ErrBusy, "busy"},
	{client.ErrLost, "lost"},
	{client.ErrLibrary, "library"},
	{client.ErrDenied, "denied"},
	{client.ErrInvalid, "invalid"},
	{client.ErrClosed, "closed"},
}

// KindOf names the kind of an error of the client: "no_answer" (until some time after the end),
// "not_replicated", "unreachable", "timeout", "busy", "lost", "library", "denied", "invalid" or
// "closed"; "other" of what comes from elsewhere.
func KindOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "other"
}

// failures counts those of several workers. The zero value has none.
type failures struct {
	mu   sync.Mutex
	list []Failure
}

func (f *failures) add(err error) {
	kind := KindOf(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.list, func(one Failure) bool { return one.Kind == kind })
	if at < 0 {
		at = len(f.list)
		f.list = append(f.list, Failure{Kind: kind, First: strings.TrimPrefix(err.Error(), "holdfast: ")})
	}
	f.list[at].Count++
}

// all are the failures, the commonest first; empty, not nil, without any.
func (f *failures) all() []Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := append([]Failure{}, f.list...)
	slices.SortStableFunc(list, func(a, b Failure) int { return int(b.Count - a.Count) })
	return list
}
