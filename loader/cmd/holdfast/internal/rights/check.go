package rights

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
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
	there, err := exists(ctx, node, user)
	if err != nil {
		return c, err
	}
	if !there {
		c.Temporary = true
		user = "holdfast-check-" + rand.Text()
		if err := do(ctx, node, append([]string{"ACL", "SETUSER", user}, n.Rules()...)...); err != nil {
			return c, fmt.Errorf("making a user to try the rules with: %w", err)
		}
		defer func() { err = errors.Join(err, remove(ctx, node, user)) }()
	}
	c.Missing = []string{}
	for _, r := range n.rights() {
		said, err := node.Do(ctx, node.B().Arbitrary("ACL", "DRYRUN", user).Args(r.try...).Build()).ToString()
		if err != nil {
			return c, fmt.Errorf("ACL DRYRUN of %s: %w", r.rule, err)
		}
		if said != "OK" {
			c.Missing = append(c.Missing, fmt.Sprintf("%s: %s", r.rule, strings.ReplaceAll(said, user, "the user")))
		}
	}
	return c, nil
}

func exists(ctx context.Context, node rueidis.Client, user string) (bool, error) {
	err := do(ctx, node, "ACL", "DRYRUN", user, "PING")
	if reply, ok := rueidis.IsRedisErr(err); ok && strings.Contains(reply.Error(), "not found") {
		return false, nil
	}
	return err == nil, err
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
