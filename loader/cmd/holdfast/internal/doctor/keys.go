// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
)

// sample is how many keys of each primary are looked at, and pages how many SCANs of it find them.
const (
	sample = 1000
	pages  = 200
)

// keys looks for keys under the prefix that disturb, as "ls" looks. Where the library is missing, that
// is found elsewhere.
func (e *examination) keys(ctx context.Context) {
	for i := range e.deployments {
		d := &e.deployments[i]
		if e.opt.Prefix == "" {
			continue
		}
		if e.silent(d) {
			e.skip("keys under the prefix")
			continue
		}
		view, err := locks.Open(d.Client, e.opt.Prefix)
		if err != nil {
			continue // the prefix is none that a client takes
		}
		within, cancel := context.WithTimeout(ctx, e.opt.Timeout)
		list, err := view.List(within, locks.Filter{Keys: sample, Pages: pages}, nil)
		cancel()
		view.Close()
		if err != nil && strings.Contains(err.Error(), "NOPERM") {
			e.find("not-checked", "", "examine as an administrator too, or "+rights.SetUser(e.opt.User, "+scan", "+fcall_ro"),
				"keys under the prefix: %v", err)
		}
		var endless, plain []string
		for _, l := range list.Locks {
			switch {
			case l.Held && l.RemainingMS < 0:
				endless = append(endless, view.Key(l.Name))
			case l.Held && l.Token == 0:
				plain = append(plain, view.Key(l.Name))
			}
		}
		e.name("foreign-keys", list.Foreign, "are no locks", "rename them, or give the locks another prefix (Config.Prefix)")
		e.name("keys-without-ttl", endless, "have no TTL", "holdfast break, or DEL, when nobody uses them")
		e.name("plain-strings", plain, "are strings", "nothing, while services move over from SET NX")
	}
}

func (e *examination) name(code string, keys []string, are, mend string) {
	if len(keys) > 0 {
		e.find(code, "", mend, "of the keys under %q %d %s: %s", e.opt.Prefix, len(keys), are, examples(keys))
	}
}

// examples names some keys. Their texts come from others.
func examples(keys []string) string {
	const most = 3
	var words []string
	for _, key := range keys[:min(most, len(keys))] {
		words = append(words, strconv.Quote(short(key)))
	}
	if len(keys) > most {
		words = append(words, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(words, ", ")
}
