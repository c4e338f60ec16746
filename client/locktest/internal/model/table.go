package model

// table is a set of hashes, with a number for each. Two states with one hash would count as one:
// with 10 million states the odds of that are 1 to 300,000, and the hash has another seed in each
// run.
type table map[uint64]uint32

// put returns a hash's number. A new one gets the next number.
func (t table) put(h uint64) (number uint32, fresh bool) {
	if number, known := t[h]; known {
		return number, false
	}
	number = uint32(len(t))
	t[h] = number
	return number, true
}
