// SPDX-License-Identifier: Apache-2.0

package adapter_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A program that imports only the client does not get the projects of the adapters: neither in its
// go.sum, nor in what it is built from.
func TestAProgramOfTheClientHasNoAdapter(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\S+)`).FindSubmatch(own)[1]
	write("go.mod", fmt.Sprintf(`module consumer

go %s

require github.com/holdfast-go/holdfast v0.0.0

replace github.com/holdfast-go/holdfast => %s
`, version, root))
	write("main.go", `package main

import "github.com/holdfast-go/holdfast/client"

func main() { _ = client.Config{} }
`)
	golang := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	golang("mod", "tidy")
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	built := golang("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	if !strings.Contains(string(sum), "github.com/redis/rueidis ") || !strings.Contains(built, "github.com/redis/rueidis") {
		t.Fatal("it does not have what it needs")
	}

	modules, err := filepath.Glob("*/go.mod")
	if err != nil || len(modules) < 6 {
		t.Fatalf("%d adapters, %v", len(modules), err)
	}
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			t.Fatal(err)
		}
		direct, _, _ := strings.Cut(string(text), "// indirect") // its own requirements are first
		ours := 0
		for _, m := range regexp.MustCompile(`(?m)^\s(\S+) v`).FindAllStringSubmatch(direct, -1) {
			if strings.Contains(string(own), m[1]+" ") || strings.HasPrefix(m[1], "github.com/holdfast-go/") {
				continue
			}
			ours++
			if strings.Contains(string(sum), m[1]+" ") || strings.Contains(built, m[1]) {
				t.Errorf("%s of %s is in the consumer's go.sum", m[1], module)
			}
		}
		if ours == 0 {
			t.Errorf("%s requires nothing", module)
		}
	}
}
