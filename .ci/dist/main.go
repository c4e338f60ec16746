// SPDX-License-Identifier: Apache-2.0

// Command dist makes the files of a release out of the commands that .ci/release has built: archives, an
// image for two platforms, the libraries, an SBOM, notes and checksums. The same commit gives the same
// files, whenever and wherever they are made; only the image also has this machine's authorities.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// release is what all files of it have in common.
type release struct {
	version  string // v1.2.3
	revision string
	made     time.Time // of the commit: what files say of when they were made
	built    string    // the directory of the commands: OS-ARCH/holdfast
	to       string    // the directory for the results
}

// repository is where the sources are.
const repository = "https://github.com/holdfast-go/holdfast"

// platforms are those that a release is for.
var platforms = []platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"}}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// command is the name of the command there.
func (p platform) command() string {
	if p.os == "windows" {
		return "holdfast.exe"
	}
	return "holdfast"
}

func main() {
	var r release
	var at int64
	var platformsOnly, notesOnly bool
	flag.StringVar(&r.version, "version", "", "of the release, like v1.2.3")
	flag.StringVar(&r.revision, "revision", "", "of the repository")
	flag.Int64Var(&at, "made", 0, "when the commit was made, in seconds since 1970")
	flag.StringVar(&r.built, "built", "", "directory that has the commands, each in a directory OS-ARCH")
	flag.StringVar(&r.to, "to", "dist", "directory for the results")
	flag.BoolVar(&platformsOnly, "platforms", false, "print the platforms, and do no more")
	flag.BoolVar(&notesOnly, "notes", false, "print the notes of this version, and do no more")
	flag.Parse()
	r.made = time.Unix(at, 0).UTC()
	if err := r.run(platformsOnly, notesOnly); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func (r release) run(platformsOnly, notesOnly bool) error {
	if platformsOnly {
		for _, p := range platforms {
			fmt.Println(p)
		}
		return nil
	}
	if !versionForm.MatchString(r.version) {
		return fmt.Errorf("the version must be like v1.2.3, not %q", r.version)
	}
	if notesOnly {
		text, err := r.notes()
		fmt.Print(text)
		return err
	}
	if r.revision == "" || r.built == "" {
		return errors.New("-revision and -built are missing")
	}
	return r.make()
}

var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// make makes the files. The checksums come last: they are of all others.
func (r release) make() error {
	if err := os.MkdirAll(r.to, 0o755); err != nil {
		return err
	}
	text, err := r.notes()
	if err != nil {
		return err
	}
	if err := r.write("RELEASE_NOTES.md", []byte(text)); err != nil {
		return err
	}
	for _, step := range []func() error{r.libraries, r.archives, r.image, r.sbom, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// write puts a result into the directory.
func (r release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.to, name), content, 0o644)
}

// libraries copies the Lua source, for those who load it without the command.
func (r release) libraries() error {
	for _, name := range libraries {
		source, err := os.ReadFile(filepath.Join("functions", name))
		if err != nil {
			return err
		}
		if err := r.write(name, source); err != nil {
			return err
		}
	}
	return nil
}

var libraries = []string{"holdfast.lua", "fenced.lua"}
