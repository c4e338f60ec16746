// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// made makes a release whose commands are one, built for this machine.
func made(t *testing.T, command []byte) release {
	t.Helper()
	r := release{version: "v1.2.3-rc.1", revision: strings.Repeat("ab", 20), made: time.Unix(1_790_000_000, 0).UTC(),
		built: t.TempDir(), to: t.TempDir()}
	for _, p := range platforms {
		require.NoError(t, os.Mkdir(filepath.Join(r.built, p.String()), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(r.built, p.String(), p.command()), command, 0o755))
	}
	require.NoError(t, r.make())
	return r
}

func results(t *testing.T, r release) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(r.to)
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, e := range entries {
		all[e.Name()], err = os.ReadFile(filepath.Join(r.to, e.Name()))
		require.NoError(t, err)
	}
	return all
}

// The same input gives the same files; each is what its name says.
func TestARelease(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "-C", "loader/cmd/holdfast", "build", "-ldflags", "-s -w", "-o", binary, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	command, err := os.ReadFile(binary)
	require.NoError(t, err)
	first, second := made(t, command), made(t, command)
	files := results(t, first)
	require.Equal(t, files, results(t, second))

	require.Len(t, files, len(platforms)+len(libraries)+4, "an archive each, libraries; image, SBOM, notes, checksums")
	lines := strings.Split(strings.TrimSpace(string(files[sums])), "\n")
	require.Len(t, lines, len(files)-1)
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(files[name])), sum, name)
	}
	for _, p := range platforms {
		t.Run(p.String(), func(t *testing.T) { checkArchive(t, files, p, command) })
	}
	t.Run("image", func(t *testing.T) { checkImage(t, files["holdfast-v1.2.3-rc.1-image.tar"], command) })
	t.Run("sbom", func(t *testing.T) { checkSBOM(t, files["holdfast-v1.2.3-rc.1.spdx.json"], files) })
}

func checkArchive(t *testing.T, files map[string][]byte, p platform, command []byte) {
	name := "holdfast-v1.2.3-rc.1-" + p.String()
	var content map[string][]byte
	if p.os == "windows" {
		content = unzip(t, files[name+".zip"])
	} else {
		content = untar(t, unpacked(t, files[name+".tar.gz"]))
	}
	require.Equal(t, command, content[name+"/"+p.command()])
	require.Contains(t, string(content[name+"/LICENSE"]), "Apache License")
	require.Contains(t, string(content[name+"/README.md"]), "Holdfast")
}

// What a runtime follows leads from the index to each platform's layer, by digests that are true.
func checkImage(t *testing.T, image, command []byte) {
	content := untar(t, image)
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, string(content["oci-layout"]))
	blob := func(d descriptor) []byte {
		blob := content["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		require.Equal(t, d.Digest, fmt.Sprintf("sha256:%x", sha256.Sum256(blob)))
		require.Len(t, blob, d.Size)
		return blob
	}
	type manifests struct{ Manifests []descriptor }
	var top, index manifests
	require.NoError(t, json.Unmarshal(content["index.json"], &top))
	require.Len(t, top.Manifests, 1)
	require.Equal(t, "v1.2.3-rc.1", top.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	require.NoError(t, json.Unmarshal(blob(top.Manifests[0]), &index))
	var architectures []string
	for _, d := range index.Manifests {
		require.Equal(t, "linux", d.Platform.OS)
		architectures = append(architectures, d.Platform.Architecture)
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		require.NoError(t, json.Unmarshal(blob(d), &manifest))
		var config struct {
			Architecture string
			Config       struct {
				User       string
				Entrypoint []string
				Labels     map[string]string
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		require.NoError(t, json.Unmarshal(blob(manifest.Config), &config))
		require.Equal(t, d.Platform.Architecture, config.Architecture)
		require.Equal(t, "65534:65534", config.Config.User)
		require.Equal(t, []string{"/holdfast"}, config.Config.Entrypoint)
		for label, value := range map[string]string{"version": "1.2.3-rc.1", "revision": strings.Repeat("ab", 20),
			"created": "2026-09-21T14:13:20Z", "licenses": "Apache-2.0", "source": repository} {
			require.Equal(t, value, config.Config.Labels["org.opencontainers.image."+label])
		}
		require.Len(t, manifest.Layers, 1)
		plain := unpacked(t, blob(manifest.Layers[0]))
		require.Equal(t, []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}, config.RootFS.DiffIDs)
		require.Equal(t, command, untar(t, plain)["holdfast"])
	}
	require.Equal(t, []string{"amd64", "arm64"}, architectures)
}

func checkSBOM(t *testing.T, content []byte, files map[string][]byte) {
	var doc spdxDocument
	require.NoError(t, json.Unmarshal(content, &doc))
	ids := map[string]bool{document: true}
	versions, checksums := map[string]string{}, map[string]string{}
	for _, p := range doc.Packages {
		require.False(t, ids[p.SPDXID], "%s is there twice", p.SPDXID)
		require.Regexp(t, `^SPDXRef-[A-Za-z0-9.-]+$`, p.SPDXID)
		ids[p.SPDXID], versions[p.Name] = true, p.VersionInfo
		for _, sum := range p.Checksums {
			checksums[p.Name] = sum.Value
		}
	}
	for _, r := range doc.Relationships {
		require.True(t, ids[r.From] && ids[r.To], r)
	}
	require.Equal(t, "v1.2.3-rc.1", versions[modulePath])
	require.Equal(t, "v1.2.3-rc.1", versions["github.com/holdfast-go/holdfast"], "not that of a replace")
	for _, uses := range []string{"github.com/redis/rueidis", "github.com/spf13/cobra", "stdlib"} {
		require.Regexp(t, `^v?\d+\.\d+`, versions[uses], uses)
	}
	for _, name := range libraries {
		require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(files[name])), checksums[name])
	}
}

// The notes are the section of the version, and a release without one is refused.
func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\nsoon\n\n## [1.3.0] - 2027-01-01\n\n### Added\n\n- this\n\n## [1.2.0]\n\nold\n"
	for about, want := range map[string]string{"Unreleased": "soon\n", "1.3.0": "### Added\n\n- this\n", "1.2.0": "old\n"} {
		part, ok := section(changelog, about)
		require.True(t, ok)
		require.Equal(t, want, part)
	}
	_, ok := section(changelog, "1.3")
	require.False(t, ok)
	_, err := release{version: "v99.0.0"}.notes()
	require.ErrorContains(t, err, "no section [99.0.0]")
}

func unpacked(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

func untar(t *testing.T, plain []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(plain)); ; {
		header, err := r.Next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		if strings.HasSuffix(header.Name, "holdfast") {
			require.EqualValues(t, 0o755, header.Mode)
		}
		all[header.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

func unzip(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	require.NoError(t, err)
	all := map[string][]byte{}
	for _, f := range r.File {
		body, err := f.Open()
		require.NoError(t, err)
		all[f.Name], err = io.ReadAll(body)
		require.NoError(t, err)
	}
	return all
}

// clone is one of this repository, with a changelog of its own.
type clone struct {
	t  *testing.T
	at string
}

func newClone(t *testing.T) clone {
	t.Helper()
	if out, err := exec.Command("git", "rev-parse", "HEAD").CombinedOutput(); err != nil {
		t.Skipf("this is no clone of the repository: %v: %s", err, out)
	}
	c := clone{t, filepath.Join(t.TempDir(), "clone")}
	out, err := exec.Command("git", "clone", "-q", "--no-tags", ".", c.at).CombinedOutput()
	require.NoError(t, err, string(out))
	c.git("checkout", "-q", "-B", "main")
	require.NoError(t, os.RemoveAll(filepath.Join(c.at, ".ci")))
	require.NoError(t, os.CopyFS(filepath.Join(c.at, ".ci"), os.DirFS(".ci"))) // as it is, committed or not
	c.changelog("changed")
	return c
}

func (c clone) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.at
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t",
		"GIT_COMMITTER_EMAIL=t@example.org")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (c clone) git(args ...string) string {
	c.t.Helper()
	out, err := c.run("git", args...)
	require.NoError(c.t, err, "%v: %s", args, out)
	return out
}

func (c clone) tag(args ...string) (string, error) {
	return c.run("bash", append([]string{".ci/tag"}, args...)...)
}

// changelog commits all, with a changelog that says of the functions in 0.9.1 whether they changed.
func (c clone) changelog(says string) {
	c.t.Helper()
	text := "# Changelog\n\n## [0.9.0]\n\n**Functions: changed**\n\n## [0.9.1]\n\n**Functions: " + says + "**\n"
	require.NoError(c.t, os.WriteFile(filepath.Join(c.at, "CHANGELOG.md"), []byte(text), 0o644))
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", "Prepare")
}

func (c clone) refuses(why string, args ...string) {
	c.t.Helper()
	before := c.git("tag")
	out, err := c.tag(args...)
	require.Error(c.t, err, out)
	require.Contains(c.t, out, why)
	require.Equal(c.t, before, c.git("tag"), "nothing is left")
}

func TestTagRefuses(t *testing.T) {
	c := newClone(t)
	c.refuses("not like v1.2.3", "1.2.3")
	c.refuses("major version", "v2.0.0")
	c.refuses("no section [0.8.0]", "v0.8.0")
	c.refuses("--force is unknown", "v0.9.0", "--force")
	stray := filepath.Join(c.at, "stray")
	require.NoError(t, os.WriteFile(stray, nil, 0o644))
	c.refuses("not committed", "v0.9.0")
	require.NoError(t, os.Remove(stray))
	c.git("checkout", "-q", "-b", "other")
	c.refuses("not main", "v0.9.0")
	c.git("checkout", "-q", "main")
	c.git("tag", "client/adapter/otel/v0.9.0")
	c.refuses("there is a tag client/adapter/otel/v0.9.0", "v0.9.0")

	c.git("tag", "v0.9.0")
	c.refuses("there is a tag v0.9.0", "v0.9.0")
	c.refuses("v0.9.0 is newer", "v0.9.0-rc.1")
	c.refuses("the functions are unchanged", "v0.9.1")
	lua := filepath.Join(c.at, "functions", "holdfast.lua")
	source, err := os.ReadFile(lua)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lua, append(source, "-- more\n"...), 0o644))
	c.changelog("changed")
	c.refuses("its version did not", "v0.9.1")
}

// The order of the modules, and what each requires.
func TestTag(t *testing.T) {
	if os.Getenv("HOLDFAST_TAG") == "" {
		t.Skip("HOLDFAST_TAG is not set: this fetches what the tests of all modules need, and takes two minutes")
	}
	c := newClone(t)
	main := c.git("rev-parse", "HEAD")
	said, err := c.tag("v0.9.0")
	require.NoError(t, err, said)
	require.Equal(t, main, c.git("rev-parse", "main"), "the branch is as it was")
	require.Equal(t, main, c.git("rev-parse", "v0.9.0^{commit}"))
	modules := strings.Split(c.git("ls-files", "*/go.mod"), "\n")
	modules = slices.DeleteFunc(modules, func(m string) bool { return strings.HasPrefix(m, "integration/") })
	require.Greater(t, len(modules), 8)
	require.Len(t, strings.Split(c.git("tag"), "\n"), len(modules)+1)
	for _, file := range modules {
		at := strings.TrimSuffix(file, "/go.mod") + "/v0.9.0"
		text := c.git("show", at+":"+file)
		require.NotContains(t, text, "replace", at)
		require.Contains(t, text, "github.com/holdfast-go/holdfast v0.9.0", at)
		sums := c.git("show", at+":"+strings.TrimSuffix(file, "mod")+"sum")
		require.Contains(t, sums, "github.com/holdfast-go/holdfast v0.9.0 h1:")
	}
	require.Contains(t, said, "git push origin v0.9.0, and then git push origin client/locktest/v0.9.0 client/adapter/")
}
