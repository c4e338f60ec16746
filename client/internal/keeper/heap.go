// SPDX-License-Identifier: Apache-2.0

package keeper

import "time"

// dueHeap orders by when things are due.
type dueHeap []dueItem

// dueItem has the time beside it: of many locks, few are in a cache of the processor.
type dueItem struct {
	timed
	due time.Time // that of its Place
}

func (q dueHeap) Len() int           { return len(q) }
func (q dueHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].Timer().Index, q[j].Timer().Index = i, j
}
func (q *dueHeap) Push(x any) {
	t := x.(timed)
	t.Timer().Index = len(*q)
	*q = append(*q, dueItem{t, t.Timer().Due})
}
func (q *dueHeap) Pop() any {
	old := *q
	t := old[len(old)-1].timed
	old[len(old)-1] = dueItem{}
	*q = old[:len(old)-1]
	t.Timer().Index = -1
	return t
}
