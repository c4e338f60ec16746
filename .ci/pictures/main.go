// SPDX-License-Identifier: Apache-2.0

// Command pictures runs the tool in a terminal, with real servers, and draws
// what people see there as SVG files: "make pictures".
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/holdfast-go/holdfast/integration/server"
)

// A scene is what a person does and sees. Where pictures do not move, the first shot is shown.
type scene struct {
	title         string
	rows, columns int
	shots         []shot
}

// A shot is taken when the text stands on the screen, after the keys.
type shot struct{ keys, until string }

var watch = scene{title: "holdfast watch", rows: 13, columns: 116, shots: []shot{
	{until: "12 waiting  1.0 hand-overs/s"},
	{keys: "j\r", until: "billing-3"},
	{keys: "b", until: "eason"},
	{keys: "it hangs\r", until: "y/N"},
	{keys: "y\r", until: "11 waiting  1.0 hand-overs/s"},
}}

// So many rows that nothing scrolls away where a busy machine turns buyers away.
var demo = scene{title: "make demo", rows: 200, columns: 120, shots: []shot{{until: "s in all"}}}

func main() {
	pictures, err := draw(context.Background())
	for name, picture := range pictures {
		err = errors.Join(err, os.WriteFile(name, picture, 0o644))
	}
	if err != nil {
		log.Fatal("pictures: ", err)
	}
}

// draw makes all pictures, by the names of their files.
func draw(ctx context.Context) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, program := range []string{"../../loader/cmd/holdfast", "../../integration/demo"} {
		if said, err := exec.Command("go", "-C", program, "build", "-o", dir, ".").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", program, err, said)
		}
	}
	d, err := server.Start(ctx, server.Spec{Own: true}) // nobody else's locks are in the picture
	if err != nil {
		return nil, err
	}
	defer d.Close()
	load := exec.Command(dir+"/holdfast", "load", "--addr", d.Addrs()[0])
	if err := errors.Join(load.Run(), open(ctx, d.ClientOption())); err != nil {
		return nil, err
	}
	watching, err := watch.play(exec.Command(dir+"/holdfast", "watch", "--addr", d.Addrs()[0]))
	if err != nil {
		return nil, err
	}
	selling, err := demo.play(exec.Command(dir + "/demo"))
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"../../docs/pictures/watch.svg": watching, "../../docs/pictures/demo.svg": selling}, nil
}
