package keeper

// dueHeap orders by when things are due.
type dueHeap []timed

func (q dueHeap) Len() int           { return len(q) }
func (q dueHeap) Less(i, j int) bool { return q[i].Timer().Due.Before(q[j].Timer().Due) }
func (q dueHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].Timer().Index, q[j].Timer().Index = i, j
}
func (q *dueHeap) Push(x any) {
	t := x.(timed)
	t.Timer().Index = len(*q)
	*q = append(*q, t)
}
func (q *dueHeap) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.Timer().Index = -1
	return t
}
