// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock that was handed over is good for two seconds only, so its renewal that fails is sent again before they
// are over, however long the lease is.
func TestAHandedOverLockIsAskedForAgain(t *testing.T) {
	terms, now := &Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}, time.Now()
	l := Provisional(terms, now, now.Add(Handover-Margin(Handover)))
	for range 3 {
		at := l.Due()
		require.Equal(t, Renew, l.Step(at))
		l.Failed(at)
	}
}

// The renewals of a server whose answers are late count too.
func TestLateRenewalsCount(t *testing.T) {
	terms, now := &Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second, MaxRenewals: 2}, time.Now()
	l := New(terms, now)
	for renewals := 0; ; {
		switch at := l.Due(); l.Step(at) {
		case Renew:
			l.Failed(at.Add(5 * time.Second))
			l.Late(at, l.Length())
			renewals++
			require.LessOrEqual(t, renewals, 2)
		case StopMaxRenewals:
			require.Equal(t, 2, renewals)
			return
		case Look:
			l.Looked(true)
		default:
			t.Fatal(l.State())
		}
	}
}
