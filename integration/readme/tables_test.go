package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// section is what stands below a heading of a page, until the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(page, "\n## "+heading+"\n")
	require.True(t, found, heading)
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

// exported is what the package client declares: its functions, the fields of Config, its errors.
func exported(t *testing.T) (options, fields, errs []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "client", "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && strings.HasPrefix(n.Name.Name, "With") {
					options = append(options, n.Name.Name)
				}
				return false
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Config" {
					for _, f := range s.Fields.List {
						for _, id := range f.Names {
							fields = append(fields, id.Name)
						}
					}
				}
				return false
			case *ast.ValueSpec:
				for _, id := range n.Names {
					if strings.HasPrefix(id.Name, "Err") {
						errs = append(errs, id.Name)
					}
				}
			}
			return true
		})
	}
	return options, fields, errs
}

// What the client offers stands in the tables, and what stands there is offered.
func TestTheTablesAreComplete(t *testing.T) {
	options, fields, errs := exported(t)
	require.NotEmpty(t, options)
	require.NotEmpty(t, fields)
	require.NotEmpty(t, errs)

	text := page(t, "docs", "client.md")
	settings := section(t, text, "Settings")
	for _, name := range append(options, fields...) {
		require.Regexp(t, "`"+name+`[`+"`"+`(]`, settings)
	}
	for _, name := range regexp.MustCompile(`\bWith(?:out)?[A-Z]\w+`).FindAllString(text, -1) {
		require.Contains(t, options, name)
	}

	for _, name := range errs {
		require.Contains(t, text, "`"+name+"`")
	}
	for _, name := range regexp.MustCompile(`\bErr[A-Z]\w+`).FindAllString(text, -1) {
		require.Contains(t, errs, name)
	}
}
