// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// functionsSince is the first version of Redis, and below any of Valkey, that
// has functions.
const functionsSince = 7

var versionPattern = regexp.MustCompile(`v=(\d+)(\.\d+)*`)

// binaries returns the servers of HOLDFAST_SERVERS, or those on PATH. A binary
// that is named must be usable; one that is found is left out if it is not,
// and the reasons are returned.
func binaries(ctx context.Context) (found []Flavour, reasons []string, err error) {
	names, named := []string{"redis-server", "valkey-server"}, false
	if list := os.Getenv("HOLDFAST_SERVERS"); list != "" {
		names, named = strings.Split(list, ","), true
	}
	for _, name := range names {
		f, err := binary(ctx, strings.TrimSpace(name))
		switch {
		case err == nil:
			found = append(found, f)
		case named:
			return nil, nil, fmt.Errorf("HOLDFAST_SERVERS: %w", err)
		default:
			reasons = append(reasons, err.Error())
		}
	}
	return found, reasons, nil
}

// binary looks at one server binary. Which server it is shows in its own
// words: distributions link redis-server to Valkey.
func binary(ctx context.Context, name string) (Flavour, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Flavour{}, fmt.Errorf("%s is not on PATH", name)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Flavour{}, fmt.Errorf("%s --version: %w", path, err)
	}
	match := versionPattern.FindStringSubmatch(string(out))
	if match == nil {
		return Flavour{}, fmt.Errorf("%s --version says %q", path, out)
	}
	version := strings.TrimPrefix(match[0], "v=")
	if major, _ := strconv.Atoi(match[1]); major < functionsSince {
		return Flavour{}, fmt.Errorf("%s is %s, without functions: %d.0 has them", path, version, functionsSince)
	}
	product := "redis-server "
	if strings.Contains(strings.ToLower(string(out)), "valkey") {
		product = "valkey-server "
	}
	return Flavour{Runtime: Local, Binary: path, Version: product + version}, nil
}
