// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// redis starts a server for an example.
func redis(kind server.Kind) *server.Deployment {
	d, err := server.Start(context.Background(), server.Spec{Kind: kind, Own: true})
	if err != nil {
		log.Fatal(err)
	}
	return d
}

// What a deploy does: bring the library to every primary, and say what was done. A second run
// changes nothing.
func ExampleLoad() {
	servers := redis(server.KindSingle)
	defer servers.Close()

	opt := rueidis.ClientOption{InitAddress: servers.Addrs()}
	client, err := rueidis.NewClient(opt)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	for range 2 {
		report, err := loader.Load(context.Background(), client, loader.Options{Dial: loader.Dialer(opt)})
		if err != nil {
			log.Fatal(err)
		}
		for _, node := range report.Nodes {
			fmt.Printf("%s: %s\n", node.Role, node.Action)
		}
	}
	// Output:
	// primary: loaded
	// primary: unchanged
}

// Before traffic is let in: is the library on every node?
func ExampleVerify() {
	servers := redis(server.KindCluster)
	defer servers.Close()

	opt := rueidis.ClientOption{InitAddress: servers.Addrs()}
	client, err := rueidis.NewClient(opt)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = loader.Verify(context.Background(), client, loader.Options{Dial: loader.Dialer(opt)})
	if errors.Is(err, loader.ErrDiffers) {
		fmt.Println("run: holdfast load")
	}
	// Output: run: holdfast load
}

// A newer library stays, because it serves older clients. Force goes back.
func ExampleOptions_rollBack() {
	servers := redis(server.KindSingle)
	defer servers.Close()
	opt := rueidis.ClientOption{InitAddress: servers.Addrs()}
	client, err := rueidis.NewClient(opt)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	if _, err := loader.Load(ctx, client, loader.Options{}); err != nil {
		log.Fatal(err)
	}

	older := source("2.0.0-rc.1") // functions/holdfast.lua of an earlier release
	report, err := loader.Load(ctx, client, loader.Options{Source: older})
	fmt.Println(report.Nodes[0].Action, report.Nodes[0].After == functions.Version, err)
	report, err = loader.Load(ctx, client, loader.Options{Source: older, Force: true})
	fmt.Println(report.Nodes[0].Action, err)
	// Output:
	// newer true <nil>
	// downgraded <nil>
}
