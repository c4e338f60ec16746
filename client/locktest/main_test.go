// SPDX-License-Identifier: Apache-2.0

package locktest_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/integration/leaks"
)

var ctx = context.Background()

// Whatever goes on at the end of a test, no goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leaks.Check(m.Run())) }

// run runs the test of an Example, which go test gives no T. What the test says goes to standard
// error.
func run(test func(t *testing.T)) {
	out := os.Stdout
	os.Stdout = os.Stderr
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "example", F: test}})
	os.Stdout = out
	if ok {
		fmt.Println("the test passes")
	} else {
		fmt.Println("the test fails")
	}
}

func held(i client.Info) bool { return i.Held }

// The tests that the README shows are Examples, and so they run.
func TestTheReadmeShowsExamples(t *testing.T) {
	readme := string(bed.Must(os.ReadFile("README.md")))
	examples := undent(string(bed.Must(os.ReadFile("example_test.go"))))
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) < 3 {
		t.Fatalf("%d blocks of Go in the README", len(blocks))
	}
	for _, b := range blocks {
		_, body, _ := strings.Cut(b[1], "{\n") // the name is a test's in one, an Example's in the other
		if body = undent(body); !strings.Contains(examples, strings.TrimSuffix(strings.TrimSpace(body), "}")) {
			t.Errorf("no Example has this of the README:\n%s", b[1])
		}
	}
}

func undent(text string) string {
	return regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(text, "")
}
