package model

// table is a set of hashes, with a number for each. Two states with one hash would count as one:
// with 10 million states the odds of that are 1 to 300,000, and the hash has another seed in each
// run.
type table struct {
	keys    []uint64
	numbers []uint32
	used    int
}

func newTable() *table { return &table{keys: make([]uint64, 1<<16), numbers: make([]uint32, 1<<16)} }

// put returns a hash's number. A new one gets the next number.
func (t *table) put(h uint64) (number uint32, fresh bool) {
	if h == 0 {
		h = 1
	}
	if t.used*5 > len(t.keys)*3 {
		t.grow()
	}
	at := t.slot(h)
	if t.keys[at] == h {
		return t.numbers[at], false
	}
	t.keys[at], t.numbers[at] = h, uint32(t.used)
	t.used++
	return uint32(t.used - 1), true
}

func (t *table) slot(h uint64) int {
	mask := len(t.keys) - 1
	at := int(h) & mask
	for t.keys[at] != 0 && t.keys[at] != h {
		at = (at + 1) & mask
	}
	return at
}

func (t *table) grow() {
	old := *t
	t.keys, t.numbers = make([]uint64, 2*len(old.keys)), make([]uint32, 2*len(old.keys))
	for i, h := range old.keys {
		if h != 0 {
			at := t.slot(h)
			t.keys[at], t.numbers[at] = h, old.numbers[i]
		}
	}
}
