// SPDX-License-Identifier: Apache-2.0

package model

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/client/internal/queue"
)

// The events of the queue machine's table, in its order.
var queueEvents = strings.Fields("Enter End Yes Grant No NoAnswer Denied Timer Release Close")

// cellsOf are the cells of the table in which an event does something.
func cellsOf(t *testing.T) (does [queue.Close + 1][queue.Confirming + 1]bool) {
	text, err := os.ReadFile("../../../internal/queue/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	kind := -1
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSpace(strings.TrimPrefix(line, "//")), "|")
		if len(columns) != len(does[0])+1 || strings.HasPrefix(columns[0], "event") {
			continue
		}
		if name := strings.TrimSpace(columns[0]); name != "" {
			if kind++; name != queueEvents[kind] {
				t.Fatalf("the table has the row %s, and not %s", name, queueEvents[kind])
			}
		}
		for s, c := range columns[1:] {
			c = strings.TrimSpace(c)
			does[kind][s] = does[kind][s] || c != "" && c != "-"
		}
	}
	return does
}

// TestCells explores what has all kinds of events, and prints which cells of the queue machine's table are
// reached: each in which an event does something must be.
func TestCells(t *testing.T) {
	cells = [queue.Confirming + 1][queue.Close + 1]int{}
	for _, s := range []scenario{
		sound("2 goroutines, odd", clients(2), crowded, odd, strays(1), nearest),
		sound("odd, strays", clients(2), odd, strays(1), healthy, nearest),
		sound("replicas", clients(2), replicas, healthy, nearest),
	} {
		s.check(t)
	}
	for kind, row := range cellsOf(t) {
		text := ""
		for s, does := range row {
			n := cells[s][kind]
			text += map[bool]string{true: "x", false: "."}[n > 0]
			if does && n == 0 {
				t.Errorf("%s in state %d was not reached", queueEvents[kind], s)
			}
		}
		t.Logf("%-8s %s", queueEvents[kind], text)
	}
}
