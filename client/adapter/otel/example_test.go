// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// The spans of a request that does its work under a lock. What ends first is exported first. Had it
// waited for the lock, there would be a 'holdfast wait' too, linked to the holder's span.
func Example() {
	run(func(t *testing.T) {
		exporter := tracetest.NewInMemoryExporter() // in a program: otlptracegrpc, for one
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
		observer, err := holdfastotel.New(holdfastotel.Options{TracerProvider: provider})
		if err != nil {
			t.Fatal(err)
		}
		c := locktest.New(t).Client(client.Config{Observer: observer}) // or client.Open

		tracer := provider.Tracer("shop")
		ctx, request := tracer.Start(t.Context(), "request")
		err = c.Do(ctx, "order:42", func(ctx context.Context) error {
			_, span := tracer.Start(ctx, "ship")
			defer span.End()
			return nil
		}, holdfastotel.Label(ctx, "shop")) // others who wait for it see this request
		if err != nil {
			t.Error(err)
		}
		request.End()

		names := map[string]string{}
		for _, span := range exporter.GetSpans() {
			names[span.SpanContext.SpanID().String()] = span.Name
		}
		for _, span := range exporter.GetSpans() {
			if span.Name == "holdfast wait" { // there is one if the lock could not be had at once
				continue
			}
			fmt.Fprintf(stdout, "%s, child of %q\n", span.Name, names[span.Parent.SpanID().String()])
		}
	})
	// Output:
	// ship, child of "holdfast hold"
	// holdfast hold, child of "request"
	// request, child of ""
	// the test passes
}

// stdout is what an Example is compared with.
var stdout *os.File

// run runs the test of an Example, which go test gives no T. What the test says goes to standard
// error.
func run(test func(t *testing.T)) {
	stdout = os.Stdout
	os.Stdout = os.Stderr
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "example", F: test}})
	os.Stdout = stdout
	if ok {
		fmt.Println("the test passes")
	} else {
		fmt.Println("the test fails")
	}
}
