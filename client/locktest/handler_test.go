// SPDX-License-Identifier: Apache-2.0

package locktest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// answer writes what a failed call means for who asked. Every error is of exactly one kind.
func answer(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError // the work's own error, ErrInvalid: look at the log
	switch {
	case errors.Is(err, client.ErrLost): // so too, before all others: the work may have run beside another
	case errors.Is(err, client.ErrBusy):
		code = http.StatusConflict // another one is at it: the same request later
	case errors.Is(err, client.ErrTimeout):
		code = http.StatusGatewayTimeout // waited for it in vain
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, client.ErrClosed):
		code = http.StatusServiceUnavailable // Redis is away, or this process goes down
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, http.StatusText(code), code)
}

// ship refuses a second request for the same order while the first one is at work.
func ship(c *client.Client, work func(context.Context, string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		err := c.TryDo(r.Context(), client.Name("order", id), func(ctx context.Context) error {
			return work(ctx, id)
		})
		if err != nil {
			answer(w, err)
		}
	}
}

// pay lets requests for the same account wait for each other, for two seconds.
func pay(c *client.Client, work func(context.Context, string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		err := c.Do(r.Context(), client.Name("account", id), func(ctx context.Context) error {
			return work(ctx, id)
		}, client.WithMaxWait(2*time.Second))
		if err != nil {
			answer(w, err)
		}
	}
}

// The handlers are tested without Redis: the lock is taken, the network is cut.
func TestHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		work := func(context.Context, string) error { return nil }
		routes := http.NewServeMux()
		routes.Handle("POST /orders/{id}/ship", ship(c, func(ctx context.Context, id string) error { return work(ctx, id) }))
		routes.Handle("POST /accounts/{id}/pay", pay(c, func(ctx context.Context, id string) error { return work(ctx, id) }))
		expect := func(path string, code int) {
			t.Helper()
			w := httptest.NewRecorder()
			if routes.ServeHTTP(w, httptest.NewRequest("POST", path, nil)); w.Code != code {
				t.Errorf("POST %s: %d, not %d", path, w.Code, code)
			}
		}

		expect("/orders/7/ship", http.StatusOK)
		expect("/accounts/7/pay", http.StatusOK)

		giveBack := s.Take("order:7", time.Minute)
		expect("/orders/7/ship", http.StatusConflict)
		expect("/orders/8/ship", http.StatusOK)
		giveBack()

		s.Take("account:7", time.Minute)
		expect("/accounts/7/pay", http.StatusGatewayTimeout)

		work = func(ctx context.Context, id string) error { // the lock is lost during the work
			time.Sleep(2 * time.Second)
			s.Take("order:"+id, time.Minute)
			<-ctx.Done()
			return client.ErrUnreachable // of another lock, which says nothing of this one
		}
		expect("/orders/9/ship", http.StatusInternalServerError)

		s.Stop()
		expect("/orders/8/ship", http.StatusServiceUnavailable)
		expect("/accounts/8/pay", http.StatusServiceUnavailable)
		s.Start()
		c.Close()
		expect("/orders/8/ship", http.StatusServiceUnavailable)
	})
}
