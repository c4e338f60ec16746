// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// tokens gives all processes of a fleet the same access token.
type tokens struct {
	client *client.Client
	fetch  func(context.Context) ([]byte, error) // the provider's answer: {"access_token": "...", "expires_in": 3600}
}

// get returns the token. One process fetches another one, a minute before it expires.
func (t *tokens) get(ctx context.Context) (string, error) {
	token, err := t.client.OnceValue(ctx, "token:mail", time.Hour, func(ctx context.Context) ([]byte, error) {
		answer, err := t.fetch(ctx)
		if err != nil {
			return nil, err
		}
		var token struct {
			Access    string `json:"access_token"`
			ExpiresIn int64  `json:"expires_in"` // seconds
		}
		err = json.Unmarshal(answer, &token)
		client.KeepFor(ctx, time.Duration(token.ExpiresIn)*time.Second-time.Minute)
		return []byte(token.Access), err
	})
	return string(token), err
}

// An access token for all processes. The provider says how long it is good for, and that decides when the next one
// is fetched.
func ExampleClient_OnceValue_token() {
	fetched := 0
	fetch := func(context.Context) ([]byte, error) { // asks the provider
		fetched++
		return fmt.Appendf(nil, `{"access_token": "secret %d", "expires_in": 3600}`, fetched), nil
	}
	for range 3 { // processes
		c := open()
		t := tokens{client: c, fetch: fetch}
		fmt.Println(t.get(context.Background()))
		info, err := c.Inspect(context.Background(), "token:mail")
		fmt.Println("kept for", info.Remaining.Round(time.Minute), err)
		c.Close()
	}
	// Output:
	// secret 1 <nil>
	// kept for 59m0s <nil>
	// secret 1 <nil>
	// kept for 59m0s <nil>
	// secret 1 <nil>
	// kept for 59m0s <nil>
}

// pages are expensive to render, and good for a while.
type pages struct {
	client *client.Client
	render func(ctx context.Context, id int) ([]byte, error)
	good   time.Duration
}

// get returns a page from the cache. On a miss one process of the fleet renders it, and all that ask meanwhile wait
// for that.
func (p *pages) get(ctx context.Context, id int) ([]byte, error) {
	page, err := p.client.OnceValue(ctx, client.Name("page", id), p.good, func(ctx context.Context) ([]byte, error) {
		return p.render(ctx, id)
	})
	switch {
	case errors.Is(err, client.ErrLost) && len(page) > 0:
		return page, nil // rendered here, and perhaps by another process too, which does no harm
	case errors.Is(err, client.ErrUnreachable):
		return p.render(ctx, id) // there is no cache: each process renders its own
	}
	return page, err
}

// A cache that is filled on a miss, by one process for all of them.
func ExampleClient_OnceValue_cache() {
	render := func(_ context.Context, id int) ([]byte, error) {
		fmt.Println("rendering", id)
		return fmt.Appendf(nil, "page %d", id), nil
	}
	for range 2 { // processes
		c := open()
		p := pages{client: c, render: render, good: time.Minute}
		for range 2 {
			page, err := p.get(context.Background(), 7)
			fmt.Println(string(page), err)
		}
		c.Close()
	}
	// Output:
	// rendering 7
	// page 7 <nil>
	// page 7 <nil>
	// page 7 <nil>
	// page 7 <nil>
}
