// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

const (
	cellWidth, lineHeight = 8.4, 19.0 // of a font of 14 px
	margin, bar           = 16.0, 36.0
)

// The styles and colours of a terminal that the tool uses.
var (
	classes = map[uint8]string{uv.AttrBold: ` class="bold"`, uv.AttrFaint: ` class="faint"`}
	colours = map[color.Color]string{
		ansi.Red: ` style="fill:#ff7b72"`, ansi.Green: ` style="fill:#7ee787"`, ansi.Yellow: ` style="fill:#e3b341"`,
	}
)

// Each frame is seen for three seconds: its animation begins when it is its turn.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]g" width="%[1]g" height="%[2]g" role="img" aria-label="%[3]s">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3}
.bold{font-weight:700}.faint{opacity:.6}
g+g{visibility:hidden}
@keyframes turn{0%%{visibility:visible}%[4]g%%,100%%{visibility:hidden}}
@media(prefers-reduced-motion:no-preference){g{visibility:hidden;animation:turn %[5]ds step-end infinite}}
</style>
<rect width="%[1]g" height="%[2]g" rx="8" fill="#161b22"/>
<path d="M20 18h.01M38 18h.01M56 18h.01" stroke="#484f58" stroke-width="11" stroke-linecap="round"/>
<text x="76" y="23" class="faint">%[3]s</text>
`

// svg draws the frames, one after the other.
func (s scene) svg(frames []frame) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, head, 2*margin+cellWidth*float64(s.columns), bar+margin+lineHeight*float64(len(frames[0])),
		html.EscapeString(s.title), 100/float64(len(frames)), 3*len(frames))
	for i, f := range frames {
		fmt.Fprintf(&b, "<g style=\"animation-delay:%ds\">\n", 3*i)
		for y, line := range f {
			drawLine(&b, bar+lineHeight*(float64(y)+.75), line)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// drawLine draws each word of one style where it stands, so that columns stay columns in every font.
func drawLine(b *bytes.Buffer, y float64, line []uv.Cell) {
	for from := 0; from < len(line); {
		to, text := from, ""
		for to < len(line) && line[to].Style.Equal(&line[from].Style) && !strings.HasSuffix(text, "  ") {
			text += line[to].Content
			to++
		}
		if word := strings.TrimSpace(text); word != "" {
			indent := ansi.StringWidth(text) - ansi.StringWidth(strings.TrimLeft(text, " "))
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f"%s%s>%s</text>`+"\n", margin+cellWidth*float64(from+indent), y,
				cellWidth*float64(ansi.StringWidth(word)), classes[line[from].Style.Attrs], colours[line[from].Style.Fg], html.EscapeString(word))
		}
		from = to
	}
}
