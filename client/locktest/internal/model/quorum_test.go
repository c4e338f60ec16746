package model

import "testing"

func two(name string, change ...func(*Quorum)) Quorum {
	q := Quorum{Bounds: Bounds{Name: name}, Clients: 2, Lease: 2, Provisional: 1, Line: 2, Guard: 2}
	for _, f := range change {
		f(&q)
	}
	return q
}

func TestTry(t *testing.T) {
	for _, q := range []Quorum{
		two("bare"),
		two("ahead", func(q *Quorum) { q.Ahead = 1 }),
		two("1 restart", func(q *Quorum) { q.Restarts = 1; q.Most = 5000000 }),
		two("2 restarts, crash", func(q *Quorum) { q.Restarts = 2; q.Crashes = 1; q.Most = 5000000 }),
		two("stray", func(q *Quorum) { q.Strays = 1; q.Most = 5000000 }),
		two("lines", func(q *Quorum) { q.Lines = 2; q.Most = 5000000 }),
		two("3", func(q *Quorum) { q.Clients = 3; q.Most = 5000000 }),
		two("stray raises", func(q *Quorum) { q.Strays = 1; q.Raises = true; q.Most = 5000000 }),
	} {
		r, err := ExploreQuorum(q, nil)
		t.Log(r, err)
		for v, tr := range r.Found {
			if tr != nil {
				t.Errorf("%v\n%v", Invariant(v), tr)
			}
		}
	}
}
