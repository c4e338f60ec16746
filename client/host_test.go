// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pod's name is told apart by its end, and its process number is 1 everywhere.
func TestTheHostsNameIsKept(t *testing.T) {
	const pod = "order-service-payments-eu-west-1-production-7f9c6d5b8-x2k9q"
	if os.Getenv("HOLDFAST_TEST_HOST") != pod {
		rename := exec.Command("unshare", "-u", "sh", "-c", `echo "$0" > /proc/sys/kernel/hostname && exec "$@"`, pod,
			os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		if err := exec.Command("unshare", "-u", "true").Run(); err != nil {
			t.Skip("no namespace of its own for the host's name: ", err)
		}
		rename.Env = append(os.Environ(), "HOLDFAST_TEST_HOST="+pod)
		out, err := rename.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	c := opened(t)
	l, err := c.Acquire(background, t.Name())
	require.NoError(t, err)
	info, err := opened(t).Inspect(background, t.Name())
	require.NoError(t, err)
	require.Equal(t, pod, info.Holder.Host)
	require.Equal(t, os.Getpid(), info.Holder.PID)
	require.True(t, strings.HasPrefix(l.Owner(), pod+":"))
	require.NoError(t, l.Release(background))
}
