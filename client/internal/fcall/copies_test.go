package fcall

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedirect(t *testing.T) {
	for text, want := range map[string][2]string{
		"MOVED 3999 127.0.0.1:6381": {"MOVED", "127.0.0.1:6381"},
		"ASK 3999 :6381":            {"ASK", ":6381"},
		"TRYAGAIN Multiple keys":    {"TRYAGAIN", ""},
		"MOVED 3999":                {"", ""},
		"READONLY You can't":        {"", ""},
		"CLUSTERDOWN Hash slot":     {"", ""},
	} {
		word, addr := redirect(Classify(context.Background(), refusal(text)))
		require.Equal(t, want, [2]string{word, addr}, text)
	}
	for named, want := range map[string]string{
		"127.0.0.1:6381": "127.0.0.1:6381", ":6381": "[::1]:7000", "::1:6381": "[::1]:6381", "[::1]:6381": "[::1]:6381", "node-1:6381": "node-1:6381",
	} {
		if named == ":6381" {
			want = "[::1]:6381"
		}
		require.Equal(t, want, address(named, "[::1]:7000"), named)
	}
	word, _ := redirect(nil)
	require.Empty(t, word)
}

// A call that was repeated may have been done by an earlier try, whatever the last one says.
func TestARepeatedCallIsUnknown(t *testing.T) {
	refused := Classify(context.Background(), &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	require.False(t, Unknown(refused))
	require.NoError(t, Outcome{}.after(true).Err)
	require.False(t, Unknown(Outcome{Err: refused}.after(false).Err))
	err := Outcome{Err: refused}.after(true).Err
	require.True(t, Unknown(err))
	require.ErrorIs(t, err, ErrUnreachable)
	require.Equal(t, refused.Error(), err.Error())
	var f *failure
	require.True(t, errors.As(err, &f))
}
