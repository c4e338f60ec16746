// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/integration/images"
)

var publicImages = []string{"redis:7.4", "redis:8", "valkey/valkey:8"}

// engine returns why containers of this machine cannot be used, if they cannot. Without the network of
// this machine the members of a Cluster would tell each other addresses that are wrong.
func engine(ctx context.Context) error {
	host, err := docker(ctx, "context", "inspect", "--format={{.Endpoints.docker.Host}}")
	if err != nil {
		return err
	}
	system, err := docker(ctx, "info", "--format={{.OperatingSystem}}")
	switch {
	case err != nil:
		return err
	case !strings.HasPrefix(host, "unix://"):
		return fmt.Errorf("the container engine at %s is not on this machine", host)
	case runtime.GOOS != "linux" || strings.Contains(system, "Docker Desktop"):
		return errors.New("this container engine has no host network")
	}
	return nil
}

// containers returns the images of HOLDFAST_IMAGES, all of them or an error; else those of the public
// ones that are here; else our own ones. If none is here, the public ones are pulled, and if that fails,
// ours are built, if mayBuild.
func containers(ctx context.Context, mayBuild bool) ([]Flavour, error) {
	if err := engine(ctx); err != nil {
		return nil, err
	}
	unlock, err := lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if list := os.Getenv("HOLDFAST_IMAGES"); list != "" {
		names := strings.Split(list, ",")
		if err := pull(ctx, names); err != nil {
			return nil, fmt.Errorf("HOLDFAST_IMAGES: %w", err)
		}
		return present(ctx, names), nil
	}
	own := present(ctx, images.Built())
	found := present(ctx, publicImages)
	if len(found)+len(own) == 0 {
		err = pull(ctx, publicImages)
		found = present(ctx, publicImages)
		if len(found) == 0 && mayBuild {
			say("no public image can be had: %v", err)
			if err := script(ctx, "build.sh", images.Build); err != nil {
				return nil, err
			}
			own = present(ctx, images.Built())
		}
	}
	if len(found) == 0 {
		found = own
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no image is here, and HOLDFAST_RUNTIME=container does not ask to build any: %w", err)
	}
	return untested(found), nil
}

// untested leaves out the image of the version in HOLDFAST_TESTED, which was tested as a local process,
// unless it is the only one.
func untested(found []Flavour) []Flavour {
	version := os.Getenv("HOLDFAST_TESTED")
	left := slices.DeleteFunc(slices.Clone(found),
		func(f Flavour) bool { return version != "" && strings.HasSuffix(f.Image, "/redis:"+version) })
	if len(left) == 0 || len(left) == len(found) {
		return found
	}
	sayOnce("no container of Redis " + version + ": HOLDFAST_TESTED says that it was tested before")
	return left
}

// present returns those of the images that are here.
func present(ctx context.Context, names []string) (found []Flavour) {
	for _, name := range names {
		if _, err := docker(ctx, "image", "inspect", "--format={{.Id}}", name); err == nil {
			found = append(found, Flavour{Runtime: Container, Image: name})
		}
	}
	return found
}

// pull brings images here that are not here.
func pull(ctx context.Context, names []string) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		if len(present(ctx, names[i:i+1])) == 0 {
			say("pulling %s", name)
			all.Go(func() { _, errs[i] = docker(ctx, "pull", "--quiet", name) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}
