// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"

	"github.com/holdfast-go/holdfast/cluster"
)

// task is what a change brings about at each primary.
type task interface {
	op() string
	// decide says what is to be done where found stands: Unchanged or Newer for nothing, Refused with the
	// reason.
	decide(found library) (Action, error)
	// write does it. It returns what people should know of it, if it is done.
	write(ctx context.Context, node rueidis.Client, at cluster.Node, found library) (note string, err error)
	// leaves is the version that a node has afterwards, "" for none.
	leaves() string
	// check compares what a node has afterwards with what it should have: nil if that will do.
	check(found library) (Action, error)
}

type loading struct {
	offered library
	force   bool
}

func (loading) op() string       { return "load" }
func (l loading) leaves() string { return l.offered.version }

func (l loading) decide(found library) (Action, error) {
	if err := found.foreign(); err != nil && !l.force {
		return Refused, err
	}
	switch {
	case found.present && found.version == "":
		return Replaced, nil
	case !found.present:
		return Loaded, nil
	case found.code == l.offered.code && len(found.others) == 0:
		return Unchanged, nil
	}
	if err := found.contract(l.offered); err != nil && !l.force {
		return Refused, err
	}
	switch compareVersions(found.version, l.offered.version) {
	case -1:
		return Upgraded, nil
	case 1:
		if l.force {
			return Downgraded, nil
		}
		return Newer, nil
	}
	return Replaced, nil
}

// write first deletes other libraries that register our functions, because the server refuses ours
// while they are there. (decide lets them pass only with force.) If the server refuses ours for
// another reason, they are put back.
func (l loading) write(ctx context.Context, node rueidis.Client, at cluster.Node, found library) (string, error) {
	adapter := rueidiscompat.NewAdapter(node)
	for _, o := range found.others {
		// A full server takes a delete and no load, so nothing could be put back. Loading what is there changes
		// nothing, and is refused in the same cases.
		if err := acknowledged(adapter.FunctionLoadReplace(ctx, o.code)); err != nil {
			return "", err
		}
	}
	for i, o := range found.others {
		if err := acknowledged(adapter.FunctionDelete(ctx, o.name)); err != nil {
			err = fmt.Errorf("deleting library '%s': %w", o.name, err)
			return "", errors.Join(err, restore(ctx, adapter, found.others[:i]))
		}
	}
	var reply *rueidiscompat.StringCmd
	var since memory
	var lost error
	if found.present {
		if l.offered.id.remembers {
			since, lost = remembered(ctx, node, at, nil)
		}
		if since != nil && together(ctx, node, l.offered.code, since) {
			return "", nil
		}
		reply = adapter.FunctionLoadReplace(ctx, l.offered.code)
	} else {
		// Without REPLACE: if somebody was quicker, theirs stays, and the look afterwards finds it.
		reply = adapter.FunctionLoad(ctx, l.offered.code)
	}
	if err := acknowledged(reply); err != nil {
		return "", errors.Join(err, restore(ctx, adapter, found.others))
	}
	if l.offered.id.remembers {
		_, err := remembered(ctx, node, at, since)
		if lost == nil && found.present {
			lost = err
		}
	}
	return forgotten(lost), nil
}

// check takes a newer library of the contract for the one offered, unless that was to go over it.
func (l loading) check(found library) (Action, error) {
	action, err := found.differs(l.offered)
	if action == Newer && !l.force && found.contract(l.offered) == nil {
		err = nil
	}
	return action, err
}

func restore(ctx context.Context, adapter rueidiscompat.Cmdable, deleted []other) error {
	var failed []error
	for _, o := range deleted {
		if err := acknowledged(adapter.FunctionLoad(ctx, o.code)); err != nil {
			failed = append(failed, fmt.Errorf("putting library '%s' back: %w", o.name, err))
		}
	}
	return errors.Join(failed...)
}

// acknowledged turns the adapter's silence into an error. The adapter asks the node for its ROLE
// first. If that is not "master", it sends nothing, and returns neither a value nor an error.
func acknowledged(reply *rueidiscompat.StringCmd) error {
	text, err := reply.Result()
	if err == nil && text == "" {
		return ErrDemoted
	}
	return explain(err)
}

type unloading struct {
	id    identity
	force bool
}

func (unloading) op() string     { return "unload" }
func (unloading) leaves() string { return "" }

func (u unloading) decide(found library) (Action, error) {
	switch {
	case !found.present:
		return Unchanged, nil
	case found.version == "" && !u.force:
		return Refused, &ForeignError{Library: u.id.name}
	}
	return Unloaded, nil
}

func (u unloading) write(ctx context.Context, node rueidis.Client, _ cluster.Node, _ library) (string, error) {
	return "", acknowledged(rueidiscompat.NewAdapter(node).FunctionDelete(ctx, u.id.name))
}

func (unloading) check(found library) (Action, error) {
	if found.present {
		return Present, fmt.Errorf("%w: version %s is still there", ErrDiffers, found.label())
	}
	return Unchanged, nil
}
