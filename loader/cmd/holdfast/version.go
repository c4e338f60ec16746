// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

// A release sets these by -ldflags: see .ci/release. Other builds know what Go stamped into them.
var version, revision string

// build is what this command was made of.
type build struct {
	Version  string `json:"version"`  // v1.2.3 of a release
	Revision string `json:"revision"` // of the repository, "unknown" if the build does not tell
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Libraries are those that this command brings, by their names on the servers.
	Libraries []libraryBuild `json:"libraries"`
}

type libraryBuild struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the source, as FUNCTION LIST WITHCODE shows it
}

func thisBuild() build {
	b := build{Version: version, Revision: revision, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version, b.Revision = cmp.Or(version, info.Main.Version), cmp.Or(revision, stamped(info.Settings))
	}
	b.Revision = cmp.Or(b.Revision, "unknown")
	for _, name := range []string{libraryLock, libraryFenced} {
		library := (&config{library: name}).chosen()
		sum := sha256.Sum256([]byte(library.source))
		b.Libraries = append(b.Libraries, libraryBuild{library.name, library.version, hex.EncodeToString(sum[:])})
	}
	return b
}

// stamped is the revision that Go noted.
func stamped(settings []debug.BuildSetting) (at string) {
	changes := ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			at = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = " with changes"
		}
	}
	return at + changes
}

func (b build) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "holdfast command %s, revision %s, %s %s\n", b.Version, b.Revision, b.Go, b.Platform)
	for _, l := range b.Libraries {
		fmt.Fprintf(&text, "library %s %s, sha256 %s\n", l.Name, l.Version, l.SHA256)
	}
	return text.String()
}

func versionCommand(a *app) *cobra.Command {
	var client bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupDeploy,
		Short:   "Print the versions of this command, of its libraries, and of those on the servers",
		Long: `Version prints the version of this command, the revision it was built from, the SHA-256 of each library in it, and
the versions on the servers. Without --addr or HOLDFAST_ADDR it is no failure if there is no server. With --client it
asks no server; "holdfast --version" prints the same.`,
		Example: `  holdfast version
  holdfast version --client --json | jq -r .client.revision
  holdfast version --addr redis-1:6379 --json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if client {
				a.clientVersion()
				return nil
			}
			if !a.cfg.json {
				fmt.Fprintf(a.stdout, "holdfast %s (the library in this command)\n", functions.Version)
			}
			return a.tend(cmd.Context(), loader.Verify)
		},
	}
	cmd.Flags().BoolVar(&client, "client", false, "ask no server")
	return cmd
}

func (a *app) clientVersion() {
	if !a.cfg.json {
		fmt.Fprint(a.stdout, thisBuild())
		return
	}
	a.printJSON(struct {
		head
		Client build `json:"client"`
	}{head{Command: "version"}, thisBuild()})
}
