// SPDX-License-Identifier: Apache-2.0

package holdfastcertmagic_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/caddyserver/certmagic"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastcertmagic "github.com/holdfast-go/holdfast/client/adapter/certmagic"
	"github.com/holdfast-go/holdfast/integration/server"
)

// address is of the real server that the Examples run on.
var address string

func TestMain(m *testing.M) { os.Exit(serve(m)) }

func serve(m *testing.M) int {
	d, err := server.Start(context.Background(), server.Spec{})
	if err != nil {
		log.Print(err)
		return 1
	}
	defer d.Close()
	address = d.Addrs()[0]
	return m.Run()
}

// Two processes share a storage, and one of them obtains a certificate.
func ExampleStorage() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	process := func() (*client.Client, *holdfastcertmagic.Storage) {
		c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{AutoLoad: true})
		if err != nil {
			log.Fatal(err)
		}
		storage := holdfastcertmagic.NewStorage(c, &certmagic.FileStorage{Path: dir})
		// certmagic.Default.Storage = storage
		return c, storage
	}
	c1, first := process()
	defer c1.Close()
	c2, second := process()
	defer c2.Close()

	fmt.Println(first.Lock(ctx, "issue_cert_example.com"))
	fmt.Println(second.TryLock(ctx, "issue_cert_example.com"))
	fmt.Println(first.Unlock(ctx, "issue_cert_example.com"))
	fmt.Println(second.TryLock(ctx, "issue_cert_example.com"))
	fmt.Println(second.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// <nil>
	// false <nil>
	// <nil>
	// true <nil>
	// <nil>
}
