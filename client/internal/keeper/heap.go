// SPDX-License-Identifier: Apache-2.0

package keeper

import "time"

// dueHeap orders by when things are due.
type dueHeap []dueItem

// dueItem has the time beside it: of many locks, few are in a cache of the processor.
type dueItem struct {
	timed
	due time.Time
}

func (q dueHeap) Len() int           { return len(q) }
func (q dueHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	*q[i].Timer(), *q[j].Timer() = i, j
}
func (q *dueHeap) Push(any) {} // add appends, where the time is known
func (q *dueHeap) Pop() any {
	old := *q
	t := old[len(old)-1].timed
	old[len(old)-1] = dueItem{}
	*q = old[:len(old)-1]
	*t.Timer() = -1
	return t
}
