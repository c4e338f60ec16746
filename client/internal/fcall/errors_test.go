// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

var noServer = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// unreadable is what rueidis says of an answer that is not an array.
func unreadable() error {
	m := message("surprise")
	_, err := m.ToArray()
	return err
}

// classes are what can come back from rueidis, and what becomes of it.
var classes = []struct {
	err     error
	want    error
	unknown bool // the call may have been done
	lasting bool // as the answer to a command that is not ours
}{
	{refusal("HFARG ttl_ms must be a positive integer"), ErrArgument, false, false},
	{refusal("HFOPTION LIMIT is not known, expected: owner ttl_ms"), ErrLibrary, false, false},
	{rueidis.Nil, ErrLibrary, true, false},
	{refusal("HFJOIN a plain lock cannot be joined"), ErrArgument, false, false},
	{refusal("HFFULL 5000 wait already"), ErrLineFull, false, false},
	{refusal("HFTYPE the key holds a list"), ErrNotALock, false, false},
	{refusal("HFSERVER NOPERM this user has no permissions to run the 'hset' command"), ErrDenied, true, false},
	{refusal("NOPERM this user has no permissions to run the 'fcall' command"), ErrDenied, false, true},
	{refusal("NOAUTH Authentication required."), ErrDenied, false, false},
	{refusal("WRONGPASS invalid username-password pair or user is disabled."), ErrDenied, false, false},
	{refusal("ERR AUTH <password> called without any password configured for the default user."), ErrDenied, false, false},
	{refusal("ERR invalid username-password pair"), ErrDenied, false, false},
	{refusal("ERR Function not found"), ErrLibrary, false, false},
	{refusal("ERR unknown command 'FCALL', with args beginning with: "), ErrLibrary, false, true},
	{refusal("ERR unknown command 'SENTINEL', with args beginning with: "), ErrArgument, false, true},
	{refusal("LOADING Redis is loading the dataset in memory"), ErrUnreachable, false, false},
	{refusal("READONLY You can't write against a read only replica."), ErrUnreachable, false, false},
	{refusal("MASTERDOWN Link with MASTER is down"), ErrUnreachable, false, false},
	{refusal("CLUSTERDOWN Hash slot not served"), ErrUnreachable, false, false},
	{refusal("TRYAGAIN Multiple keys request during rehashing of slot"), ErrUnreachable, false, false},
	{refusal("OOM command not allowed when used memory > 'maxmemory'."), ErrUnreachable, false, false},
	{refusal("MISCONF Redis is configured to save RDB snapshots"), ErrUnreachable, false, false},
	{refusal("NOREPLICAS Not enough good replicas to write."), ErrUnreachable, false, false},
	{refusal("BUSY Redis is busy running a script."), ErrUnreachable, false, false},
	{refusal("BUSY Valkey is busy running a script. You can only call FUNCTION KILL"), ErrUnreachable, false, false},
	{refusal("MOVED 3999 127.0.0.1:6381"), ErrUnreachable, false, false},
	{refusal("ASK 3999 127.0.0.1:6381"), ErrUnreachable, false, false},
	{refusal("UNBLOCKED force unblock from blocking operation"), ErrUnreachable, false, false},
	{refusal("HFSERVER The user executing the script can't run this command or subcommand"), ErrDenied, true, false},
	{refusal("HFSERVER ACL failure in script: No permissions to access a channel"), ErrDenied, true, false},
	{refusal("ERR max number of clients reached"), ErrUnreachable, false, false},
	{refusal("ERR syntax error"), ErrUnreachable, false, true},
	{refusal("ERR Client tracking can be enabled only with RESP3"), ErrUnreachable, false, true},
	{unreadable(), ErrLibrary, true, false},
	{io.EOF, ErrUnreachable, true, false},
	{io.ErrUnexpectedEOF, ErrUnreachable, true, false},
	{os.ErrDeadlineExceeded, ErrUnreachable, true, false},
	// a time-out of rueidis, while the caller's context goes on
	{context.DeadlineExceeded, ErrUnreachable, true, false},
	{context.Canceled, ErrUnreachable, true, false},
	{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, ErrUnreachable, true, false},
	{noServer, ErrUnreachable, false, false},
	{fmt.Errorf("sentinel: %w", noServer), ErrUnreachable, false, false},
	{rueidis.ErrClosing, ErrUnreachable, true, false},
	{rueidis.ErrNoSlot, ErrUnreachable, true, false},
	{rueidis.ErrNoCache, ErrUnreachable, true, true},
	{fmt.Errorf("NOPERM no permissions to run 'client|tracking': [CLIENT TRACKING ON]\n%w", rueidis.ErrNoCache), ErrDenied, false, true},
	{fmt.Errorf("LOADING Redis is loading: [CLIENT TRACKING ON]\n%w", rueidis.ErrNoCache), ErrUnreachable, false, true},
}

func TestClassify(t *testing.T) {
	for _, c := range classes {
		t.Run(c.err.Error(), func(t *testing.T) {
			got := Classify(context.Background(), c.err)
			require.ErrorIs(t, got, c.want)
			kinds := 0
			for _, kind := range []error{ErrBusy, ErrUnreachable, ErrInvalid, context.Canceled, context.DeadlineExceeded} {
				if errors.Is(got, kind) {
					kinds++
				}
			}
			require.Equal(t, 1, kinds, "exactly one kind: %v", got)
			unloaded := notLoaded("HOST:PORT", got)
			require.ErrorIs(t, unloaded, c.want)
			require.False(t, errors.Is(unloaded, ErrUnreachable) && errors.Is(unloaded, ErrInvalid), "one kind too: %v", unloaded)
			require.Equal(t, c.unknown, Unknown(got), "unknown outcome")
			require.Equal(t, c.lasting, Lasting(c.err), "lasting")
			words, _, _ := strings.Cut(c.err.Error(), "\n") // of two errors, the server's
			require.Contains(t, got.Error(), words)
		})
	}
}

func TestClassifyLeavesTheCallersOwnEndAlone(t *testing.T) {
	require.NoError(t, Classify(context.Background(), nil))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, context.Canceled, Classify(over, context.Canceled))
	require.ErrorIs(t, Classify(over, refusal("LOADING it is")), ErrUnreachable, "what the server answered is still that")
}
