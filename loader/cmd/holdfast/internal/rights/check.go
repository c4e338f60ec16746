// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// Check is what a server said about a user's rights.
type Check struct {
	Addr      string   `json:"addr"`
	Temporary bool     `json:"temporary"` // there is no such user: the rules were tried with one made for that
	Missing   []string `json:"missing"`   // in the server's words
}

// Try asks one server, by ACL DRYRUN, whether the user may do what is needed. It runs none of it. If
// there is no such user, it makes one of a random name that has the rules and cannot log in, and
// deletes it. The caller's user needs +acl|dryrun, and for that +acl|setuser +acl|deluser.
func (n Need) Try(ctx context.Context, node rueidis.Client, user string) (c Check, err error) {
	if c, err = n.Look(ctx, node, user); !errors.Is(err, ErrNoUser) {
		return c, err
	}
	c.Temporary = true
	user = "holdfast-check-" + rand.Text()
	if err := do(ctx, node, append([]string{"ACL", "SETUSER", user}, n.Rules()...)...); err != nil {
		return c, fmt.Errorf("making a user to try the rules with: %w", err)
	}
	defer func() { err = errors.Join(err, remove(ctx, node, user)) }()
	c.Missing, err = n.look(ctx, node, user)
	return c, err
}

// ErrNoUser is the error of Look for a user that the server does not have.
var ErrNoUser = errors.New("there is no such user")

// Look asks one server, by ACL DRYRUN, what the user may not do. It runs nothing, and makes no user.
func (n Need) Look(ctx context.Context, node rueidis.Client, user string) (Check, error) {
	err := do(ctx, node, "ACL", "DRYRUN", user, "PING")
	if reply, ok := rueidis.IsRedisErr(err); ok && strings.Contains(reply.Error(), "not found") {
		return Check{}, ErrNoUser
	}
	if err != nil {
		return Check{}, err
	}
	missing, err := n.look(ctx, node, user)
	return Check{Missing: missing}, err
}

// look returns the rights that are missing, in the server's words. Grant reads them.
func (n Need) look(ctx context.Context, node rueidis.Client, user string) ([]string, error) {
	missing := []string{}
	for _, r := range n.rights() {
		said, err := node.Do(ctx, node.B().Arbitrary("ACL", "DRYRUN", user).Args(r.try...).Build()).ToString()
		if err != nil {
			return missing, fmt.Errorf("ACL DRYRUN of %s: %w", r.rule, err)
		}
		if said != "OK" {
			// only there: the name may be a word of the rest, which Grant reads
			said = strings.Replace(said, "User "+user+" ", "The user ", 1)
			missing = append(missing, fmt.Sprintf("%s: %s", r.rule, said))
		}
	}
	return missing, nil
}

// Grant returns the rules that give the user what is missing: a command, or the keys or channels that
// a command it may use was refused.
func (n Need) Grant(c Check) (rules []string) {
	for _, missing := range c.Missing {
		rule, said, _ := strings.Cut(missing, ": ")
		switch {
		case strings.HasSuffix(said, " channel"):
			rule = "&" + locks.Literal(n.Prefix) + "*"
		case strings.HasSuffix(said, " key"):
			rule = "~" + locks.Literal(n.Prefix) + "*"
		}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// Commands are those that the role uses, without their subcommands.
func (n Need) Commands() (names []string) {
	for _, r := range n.rights() {
		if name := strings.ToLower(r.try[0]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// remove does it even when the caller has no more time.
func remove(ctx context.Context, node rueidis.Client, user string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := do(ctx, node, "ACL", "DELUSER", user); err != nil {
		return fmt.Errorf("deleting the user %s again: %w", user, err)
	}
	return nil
}

func do(ctx context.Context, node rueidis.Client, words ...string) error {
	return node.Do(ctx, node.B().Arbitrary(words...).Build()).Error()
}
