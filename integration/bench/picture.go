// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
)

// picture draws the hot lock between clients: for each player a bar for its rate, on a logarithmic scale,
// and beside it how long the hundredth of the waits was, and how evenly they were served.
func (r *report) picture() string {
	const left, width, height = 150, 330, 22
	var b strings.Builder
	y := 0
	text := func(x int, style, format string, args ...any) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, style, fmt.Sprintf(format, args...))
	}
	for _, c := range r.cells {
		if c.workload != "hot" || c.clients == 1 || c.goroutines > 1 || c.server > 0 {
			continue
		}
		y += 34
		text(10, `font-weight="bold"`, "%s: locks per second, p99 of the wait, most / least served", c.title)
		for _, x := range r.in(c) {
			y += height
			rate, colour := x.medians[mRate], "#9aa5b1"
			if x.player == holdfastName {
				colour = "#1f6feb"
			}
			bar := int(width * max(0, math.Log10(rate)-1) / 5) // 10 to 1,000,000
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="14" fill="%s"/>`+"\n", left, y-11, bar, colour)
			text(10, "", "%s", x.player)
			text(left+bar+6, "", "%s, %.1f ms, %s", show(rate), x.medians[mP99]/1000, show(x.medians[mFair]))
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="720" height="%d" font-family="sans-serif" font-size="13">`+"\n"+
		`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n%s</svg>\n", y+20, &b)
}
