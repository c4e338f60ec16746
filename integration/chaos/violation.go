// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// violation is something that must not be, by one of the rules exclusion, token, hang, stuck,
// leak, growth and died.
type violation = oracle.Violation

func wrong(rule, lock string, at stamp, form string, args ...any) violation {
	return violation{Rule: rule, Lock: lock, At: at, Text: fmt.Sprintf(form, args...)}
}

func rules(list []violation) string {
	var names []string
	for _, v := range list {
		names = append(names, v.Rule)
	}
	return strings.Join(names, " ")
}
