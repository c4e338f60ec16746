// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
)

// What is in the command can be told without a server, and whatever the environment says of one.
func TestVersionOfTheCommand(t *testing.T) {
	sum := func(source string) string {
		sum := sha256.Sum256([]byte(source))
		return hex.EncodeToString(sum[:])
	}
	nowhere := []string{"HOLDFAST_ADDR=a:b@c", "HOLDFAST_PASSWORD=secret"}
	said := holdfast(t, nowhere, "--version")
	require.Equal(t, 0, said.code, said)
	require.Empty(t, said.errors)
	for _, part := range []string{"command " + releaseVersion, "revision " + releaseRevision,
		"library holdfast " + functions.Version + ", sha256 " + sum(functions.Source) + "\n",
		"library holdfast_fenced " + functions.FencedVersion + ", sha256 " + sum(functions.FencedSource) + "\n"} {
		require.Contains(t, said.out, part)
	}
	require.Equal(t, said, holdfast(t, nowhere, "version", "--client"))

	said = holdfast(t, nowhere, "version", "--client", "--json")
	require.Equal(t, 0, said.code, said)
	var report struct {
		Command string
		Client  struct {
			Version, Revision string
			Libraries         []struct{ Name, Version, SHA256 string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(said.out), &report))
	require.Equal(t, "version", report.Command)
	require.Equal(t, releaseVersion, report.Client.Version)
	require.Equal(t, releaseRevision, report.Client.Revision)
	require.Len(t, report.Client.Libraries, 2)
	require.Equal(t, sum(functions.Source), report.Client.Libraries[0].SHA256)

	require.Contains(t, holdfast(t, nil, "help").out, "--version")
}
