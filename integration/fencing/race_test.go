package fencing

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lock that fails all the time: many have it at once. Tokens are as they should be.
const (
	holders = 6
	turns   = 40
)

// overlap gives each holder its turns, all at the same time, and counts the writes that passed. A
// turn says whether it did.
func overlap(t *testing.T, turn func(token int64) (bool, error)) (passed, last int64) {
	var all sync.WaitGroup
	var token, count atomic.Int64
	for range holders {
		all.Go(func() {
			for range turns {
				ok, err := turn(token.Add(1))
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					count.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, count.Load())
	return count.Load(), token.Load()
}

func TestClaimReadWriteLosesNoUpdate(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		require.True(t, d.passes(d, upsertRow, 7, 0, 1000))
		passed, last := overlap(t, func(token int64) (bool, error) {
			remaining, passed, err := claim(d, 7, token)
			if err != nil || !passed {
				return false, err
			}
			runtime.Gosched()
			return try(d, page[updateRow], 7, token, remaining-1)
		})
		t.Logf("%d of %d holders wrote", passed, last)
		require.Equal(t, 1000-passed, d.number("SELECT remaining FROM stock WHERE id = 7"))
		require.Equal(t, last, d.number("SELECT fence FROM stock WHERE id = 7"), "the newest always gets through")
	})
}

// Each entry counts on from the last one, which it reads behind the claim.
func TestTheLogIsInTheOrderOfItsTokens(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		passed, _ := overlap(t, func(token int64) (bool, error) {
			tx, err := d.Begin()
			if err != nil {
				return false, err
			}
			defer tx.Rollback()
			if ok, err := try(tx, page[claimFence], "a", token); err != nil || !ok {
				return false, err
			}
			var last int64
			if err := tx.QueryRow("SELECT COALESCE(MAX(amount), 0) FROM ledger").Scan(&last); err != nil {
				return false, err
			}
			for step := int64(1); step <= 2; step++ {
				if ok, err := try(tx, page[appendLedger], "a", token, step, last+step); err != nil || !ok {
					return false, err
				}
			}
			return true, tx.Commit()
		})
		rows, err := d.Query("SELECT amount FROM ledger ORDER BY fence, step")
		require.NoError(t, err)
		defer rows.Close()
		next := int64(1)
		for ; rows.Next(); next++ {
			var amount int64
			require.NoError(t, rows.Scan(&amount))
			require.Equal(t, next, amount)
		}
		require.NoError(t, rows.Err())
		require.Equal(t, 2*passed, next-1)
	})
}
