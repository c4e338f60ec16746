// SPDX-License-Identifier: Apache-2.0

package reexec_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{
		"fail": func(p *reexec.Parent) error {
			var why string
			if err := p.Job(&why); err != nil {
				return err
			}
			return errors.New(why)
		},
	})
	m.Run()
}

func TestFailures(t *testing.T) {
	for role, says := range map[string]string{"fail": "fail: because\n", "dance": "dance: HOLDFAST_ROLE: no such role in this program\n"} {
		var stderr strings.Builder
		p, err := reexec.Start(role, "because", func(cmd *exec.Cmd) { cmd.Stderr = &stderr })
		require.NoError(t, err)
		_, err = p.Hear()
		require.ErrorContains(t, err, "exit status 1")
		require.Equal(t, says, stderr.String())
	}
	_, err := reexec.Start("fail", func() {})
	require.ErrorContains(t, err, "job of fail")
	_, err = reexec.Start("fail", nil, func(cmd *exec.Cmd) { cmd.Path = "/no/such/program" })
	require.ErrorContains(t, err, "start fail")
}
