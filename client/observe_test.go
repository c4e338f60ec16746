package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// An Observer that is unset costs a call no memory.
func TestAnUnsetObserverAllocatesNothing(t *testing.T) {
	var c client.Client
	l := &client.Lock{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Told(background, l, nil)
		c.Told(background, nil, client.ErrBusy)
	}))
}
