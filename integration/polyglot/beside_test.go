// SPDX-License-Identifier: Apache-2.0

package polyglot

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside returns the worker with LIMIT or SHARED in its environment.
func (w worker) beside(how ...string) worker {
	w.env = append(slices.Clone(w.env), how...)
	return w
}

// eachThree runs a test for each language and the two behind it in the list.
func eachThree(t *testing.T, test func(t *testing.T, a, b, c worker)) {
	all := workers(t)
	each(t, func(t *testing.T, w worker) {
		i := slices.IndexFunc(all, func(o worker) bool { return o.name == w.name })
		test(t, w, all[(i+1)%len(all)], all[(i+2)%len(all)])
	})
}

// Two hold a lock with a limit of two. The third waits, and gets the slot that becomes free.
func TestAtMostTwo(t *testing.T) {
	t.Parallel()
	eachThree(t, func(t *testing.T, a, b, c worker) {
		one := a.beside("LIMIT=2").hold(t, "60000", "0")
		first, slot := one.heldIn()
		require.Equal(t, int64(1), slot)
		second, slot := b.beside("LIMIT=2").hold(t, "60000", "0").heldIn()
		require.Equal(t, int64(2), slot)
		three := c.beside("LIMIT=2").hold(t, "60000", forEver)
		waits(t, bed.c, t.Name(), 1)
		one.release()
		third, slot := three.heldIn()
		require.Equal(t, int64(1), slot)
		require.True(t, slices.IsSorted([]int64{first, second, third}))
		three.release()
		require.Equal(t, 1, inspect(t, t.Name()).Holds)
	})
}

// Two share a lock. One who wants it alone waits until both have left.
func TestReadersAndAWriter(t *testing.T) {
	t.Parallel()
	eachThree(t, func(t *testing.T, a, b, c worker) {
		one, two := a.beside("SHARED=1").hold(t, "60000", "0"), b.beside("SHARED=1").hold(t, "20000", "0")
		_, first := one.heldIn()
		_, second := two.heldIn()
		require.ElementsMatch(t, []int64{1, 2}, []int64{first, second})
		alone := c.hold(t, "60000", forEver)
		waits(t, bed.c, t.Name(), 1)
		one.release()
		info := inspect(t, t.Name())
		require.Equal(t, 1, info.Holds)
		require.Equal(t, 1, info.Waiters)
		two.release()
		_, slot := alone.heldIn()
		require.Zero(t, slot)
		alone.release()
	})
}
