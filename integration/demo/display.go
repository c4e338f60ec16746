// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// bar is full when all is sold, with what is sold too much behind its end.
func bar(sold int) string {
	const width = 30
	full, over := min(width, sold*width/stock), max(0, sold-stock)
	text := fmt.Sprintf("  [%s%s]%s %4d of %d sold", strings.Repeat("#", full), strings.Repeat(".", width-full),
		strings.Repeat("!", min(width/2, over*width/stock)), sold, stock)
	if over > 0 {
		text += fmt.Sprintf(", %d too many", over)
	}
	return text
}
