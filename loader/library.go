// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// library is what stands under our name at one node.
type library struct {
	id      identity
	present bool
	code    string
	version string  // "" if it is absent or not Holdfast
	others  []other // further libraries that register functions of ours
}

// other is somebody else's library.
type other struct {
	name  string
	code  string
	names []string // functions of ours
}

// label is the library in a report.
func (l library) label() string {
	if l.present && l.version == "" {
		return "foreign"
	}
	return l.version
}

// foreign returns why the node must not be touched, or nil.
func (l library) foreign() error {
	if l.present && l.version == "" {
		return &ForeignError{Library: l.id.name}
	}
	for _, o := range l.others {
		return &ForeignError{Library: o.name, Functions: o.names}
	}
	return nil
}

// contract returns why callers of this library would not understand the other one, or nil.
func (l library) contract(offered library) error {
	if major(l.version) == major(offered.version) {
		return nil
	}
	return &VersionError{l.version, offered.version}
}

// differs compares what a node has with what it should have: Unchanged and nil if they are the
// same.
func (l library) differs(want library) (Action, error) {
	if err := l.foreign(); err != nil {
		return Foreign, fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	if !l.present {
		return Missing, fmt.Errorf("%w: there is none, it should be %s", ErrDiffers, want.version)
	}
	if l.code == want.code {
		return Unchanged, nil
	}
	err := fmt.Errorf("%w: it is %s, it should be %s", ErrDiffers, l.version, want.version)
	if contract := l.contract(want); contract != nil {
		err = fmt.Errorf("%w: %w", ErrDiffers, contract)
	}
	switch compareVersions(l.version, want.version) {
	case -1:
		return Outdated, err
	case 1:
		return Newer, err
	}
	return Differs, fmt.Errorf("%w: the code was changed, though the version is %s", ErrDiffers, l.version)
}

// list reads what a node has of one of our libraries. It works on replicas too.
func list(ctx context.Context, node rueidis.Client, id identity) (library, error) {
	adapter := rueidiscompat.NewAdapter(node)
	all, err := adapter.FunctionList(ctx, rueidiscompat.FunctionListQuery{WithCode: true}).Result()
	if err != nil {
		return library{}, explain(err)
	}
	found := library{id: id}
	for _, lib := range all {
		names := id.ours(lib)
		if lib.Name != id.name && len(names) == 0 {
			continue
		}
		if lib.Name != id.name {
			found.others = append(found.others, other{name: lib.Name, code: lib.Code, names: names})
			continue
		}
		found.present, found.code = true, lib.Code
		if slices.Contains(names, id.mark) {
			found.version = versionOf(lib.Code)
		}
	}
	return found, nil
}

// ours returns the functions of a library that have a name which our library registers.
func (id identity) ours(lib rueidiscompat.Library) []string {
	var names []string
	for _, function := range lib.Functions {
		// To the server, names that differ only in the case of their letters are one.
		if slices.ContainsFunc(id.functions, func(name string) bool { return strings.EqualFold(name, function.Name) }) {
			names = append(names, function.Name)
		}
	}
	slices.Sort(names)
	return names
}
