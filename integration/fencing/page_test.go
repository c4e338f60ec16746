package fencing

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The statements of docs/fencing.md, by their first lines.
const (
	createStock     = "create the guarded table"
	claimRow        = "claim the row"
	updateRow       = "update the row"
	addToRow        = "add to the row"
	upsertRow       = "insert or update the row"
	createFences    = "create the fences"
	claimFence      = "claim the fence"
	createLedger    = "create the log"
	appendLedger    = "append to the log"
	claimAndAppend  = "claim and append (PostgreSQL)"
	statementsCount = 10
)

// page holds the statements. There is no other SQL here but what looks.
var page = mustRead("../../docs/fencing.md")

func mustRead(path string) map[string]string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	statements := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		if statements[m[1]] != "" {
			panic(fmt.Sprintf("two statements are called %q", m[1]))
		}
		statements[m[1]] = m[2]
	}
	return statements
}

// Every statement of the page has a name here, and each name a use: an unused constant is an error
// of staticcheck.
func TestEveryStatementOfThePageIsKnown(t *testing.T) {
	text, err := os.ReadFile("../../docs/fencing.md")
	require.NoError(t, err)
	require.Len(t, page, statementsCount)
	require.Len(t, regexp.MustCompile("(?m)^```sql").FindAllString(string(text), -1), statementsCount)
}
