package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// arrows returns which file of the package uses what of which other file: types, functions,
// methods, fields and variables.
func arrows(t *testing.T) map[string]map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	// Imports stay unresolved: only what is defined here counts, and their errors do not.
	cfg := types.Config{Error: func(error) {}}
	pkg, _ := cfg.Check("client", fset, files, info)
	found := map[string]map[string][]string{}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := fset.Position(ident.Pos()).Filename, fset.Position(object.Pos()).Filename
		if from == to || from == "" || to == "" {
			continue
		}
		if found[from] == nil {
			found[from] = map[string][]string{}
		}
		if !slices.Contains(found[from][to], object.Name()) {
			found[from][to] = append(found[from][to], object.Name())
		}
	}
	return found
}

// The files of the package are built on one another, without a circle: a reader of one knows
// where to look for what it uses, and changes it without looking up.
func TestFilesAreBuiltOnOneAnother(t *testing.T) {
	uses := arrows(t)
	if len(uses) < 10 {
		t.Fatalf("only %d files use others", len(uses))
	}
	const open, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(file string)
	visit = func(file string) {
		state[file], path = open, append(path, file)
		for to, names := range uses[file] {
			switch state[to] {
			case open:
				slices.Sort(names)
				t.Errorf("%s uses %v of %s, and that uses it: %v", file, names, to, path[slices.Index(path, to):])
			case 0:
				visit(to)
			}
		}
		state[file], path = done, path[:len(path)-1]
	}
	for file := range uses {
		if state[file] == 0 {
			visit(file)
		}
	}
}

// A mutex is taken only in the file that declares it: what it guards can be read on one page.
func TestMutexesStayInTheirFiles(t *testing.T) {
	for file, uses := range arrows(t) {
		for of, names := range uses {
			if slices.Contains(names, "mu") {
				t.Errorf("%s takes a mutex of %s", file, of)
			}
		}
	}
}
