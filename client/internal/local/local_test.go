package local_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/client/internal/local"
	"github.com/stretchr/testify/require"
)

type (
	lines  = local.Lines[string, int, int]
	waiter = local.Waiter[string, int, int]
)

// lead enters a line that nobody leads.
func lead(t *testing.T, l *lines, key string) *local.Line[string, int, int] {
	t.Helper()
	line, w := l.Enter(key, 0)
	require.Nil(t, w, "nobody is there, so the caller leads")
	return line
}

// queue enters n waiters, which show 1, 2, 3, ...
func queue(t *testing.T, l *lines, key string, n int) (waiters []*waiter) {
	t.Helper()
	for i := range n {
		_, w := l.Enter(key, i+1)
		require.NotNil(t, w)
		waiters = append(waiters, w)
	}
	return waiters
}

// turn returns what has arrived at a waiter; 0: nothing.
func turn(w *waiter) int {
	select {
	case value := <-w.Turn():
		return value
	default:
		return 0
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	l := local.New[string, int, int]()
	line := lead(t, l, "a")
	waiters := queue(t, l, "a", 20)
	require.Equal(t, 20, line.Waiting())
	for i, w := range waiters {
		require.True(t, line.HandOn(func(shows int) (int, bool, bool) {
			require.Equal(t, i+1, shows, "the head is asked first")
			return 100 + shows, true, true
		}))
		require.Equal(t, 101+i, turn(w))
		for _, later := range waiters[i+1:] {
			require.Zero(t, turn(later))
		}
	}
	require.False(t, line.HandOn(func(int) (int, bool, bool) { t.Error("nobody is left"); return 0, true, true }))
}

func TestHandOnPassesOverWhoIsRefused(t *testing.T) {
	l := local.New[string, int, int]()
	line := lead(t, l, "a")
	waiters := queue(t, l, "a", 3)
	require.True(t, line.HandOn(func(shows int) (int, bool, bool) { return shows, shows == 2, true }))
	require.Equal(t, 2, turn(waiters[1]))
	asked := 0
	require.False(t, line.HandOn(func(int) (int, bool, bool) { asked++; return 0, false, false }), "offer ended it")
	require.Equal(t, 1, asked)
	require.Equal(t, 2, line.Waiting(), "the others keep their places")
	require.True(t, line.Leave(func(shows int) int { return 10 + shows }))
	require.Equal(t, 11, turn(waiters[0]))
	require.Zero(t, turn(waiters[2]))
}

func TestALineEndsWithItsLastLeader(t *testing.T) {
	l := local.New[string, int, int]()
	line := lead(t, l, "a")
	lead(t, l, "b") // another key is another line
	_, _, ok := l.Find("c")
	require.False(t, ok)
	line.Show("has it")
	w := queue(t, l, "a", 1)[0]
	shown, waiting, ok := l.Find("a")
	require.True(t, ok)
	require.Equal(t, "has it", shown)
	require.Equal(t, 1, waiting)
	require.True(t, line.Leave(func(shows int) int { return shows }))
	shown, waiting, ok = l.Find("a")
	require.True(t, ok, "the next one leads")
	require.Empty(t, shown, "and shows nothing yet")
	require.Zero(t, waiting)
	require.Equal(t, 1, turn(w))
	require.False(t, line.Leave(func(int) int { t.Error("nobody is there"); return 0 }))
	_, _, ok = l.Find("a")
	require.False(t, ok)
	lead(t, l, "a")
}

func TestDismissTellsAllAndEndsTheLine(t *testing.T) {
	l := local.New[string, int, int]()
	line := lead(t, l, "a")
	waiters := queue(t, l, "a", 3)
	line.Dismiss(7)
	for _, w := range waiters {
		require.Equal(t, 7, turn(w))
		require.False(t, w.GiveUp(), "its turn has come")
	}
	_, _, ok := l.Find("a")
	require.False(t, ok)
}

func TestWhoGivesUpKeepsTheOthersInOrder(t *testing.T) {
	l := local.New[string, int, int]()
	line := lead(t, l, "a")
	waiters := queue(t, l, "a", 5)
	for _, i := range []int{2, 0, 4} {
		require.True(t, waiters[i].GiveUp())
		require.False(t, waiters[i].GiveUp(), "once")
	}
	for _, i := range []int{1, 3} {
		require.True(t, line.Leave(func(shows int) int { return shows }))
		require.Equal(t, i+1, turn(waiters[i]))
	}
	for _, i := range []int{2, 0, 4} {
		require.Zero(t, turn(waiters[i]))
	}
	require.False(t, line.Leave(func(int) int { return 0 }))
}

// A turn and a giving up that cross: either the waiter has its turn, or it is out of the line;
// never both, never neither.
func TestATurnThatCrossesAGivingUp(t *testing.T) {
	l := local.New[string, int, int]()
	for i := range 2000 {
		key := fmt.Sprint(i)
		line := lead(t, l, key)
		w := queue(t, l, key, 1)[0]
		gaveUp := make(chan bool)
		go func() { gaveUp <- w.GiveUp() }()
		handed := line.HandOn(func(int) (int, bool, bool) { return 1, true, true })
		require.Equal(t, !handed, <-gaveUp)
		require.Equal(t, handed, turn(w) == 1)
		if handed {
			require.False(t, line.Leave(func(int) int { return 0 }), "the one that was handed it leads alone")
		}
	}
}

// However they come, hand on, leave and give up, one leads at a time, and at the end nothing is
// left.
func TestOneLeadsAtATime(t *testing.T) {
	l := local.New[string, int, int]()
	var all sync.WaitGroup
	var leading atomic.Int32
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				line, w := l.Enter("a", g)
				if w != nil {
					if i%7 == g%7 && w.GiveUp() {
						continue
					}
					<-w.Turn()
				}
				if n := leading.Add(1); n != 1 {
					t.Errorf("%d lead", n)
				}
				leading.Add(-1)
				if i%2 == 0 && line.HandOn(func(int) (int, bool, bool) { return 1, true, true }) {
					continue
				}
				line.Leave(func(int) int { return 2 })
			}
		})
	}
	all.Wait()
	_, _, ok := l.Find("a")
	require.False(t, ok)
}
