package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ory/dockertest/v3/docker"

	"github.com/holdfast-go/holdfast/integration/images"

	"github.com/holdfast-go/holdfast/integration/server/internal/machine"
)

const defaultImages = "redis:7.4,redis:8,valkey/valkey:8"

// stalledAfter is how long a pull may make no progress.
const stalledAfter = 10 * time.Second

// containers returns the images that this machine has or can pull: those of
// HOLDFAST_IMAGES, all of them or an error; else the public ones; else our own
// ones, built here if that is wanted.
func containers(ctx context.Context, mayBuild bool) ([]machine.Flavour, error) {
	e, err := connect()
	if err != nil {
		return nil, err
	}
	unlock, err := machine.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if list := os.Getenv("HOLDFAST_IMAGES"); list != "" {
		found, err := e.obtain(ctx, strings.Split(list, ","))
		if err != nil {
			return nil, fmt.Errorf("HOLDFAST_IMAGES: %w", err)
		}
		return found, nil
	}
	found, err := e.obtain(ctx, strings.Split(defaultImages, ","))
	if err != nil {
		machine.Say("not all public images can be had: %v", firstLine(err))
	}
	if len(found) > 0 {
		return untested(found), nil
	}
	if mayBuild {
		if err := machine.Build(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range images.Built() {
		if e.has(name) {
			found = append(found, machine.Flavour{Runtime: machine.Container, Image: name})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no image is here, none can be pulled, and HOLDFAST_RUNTIME=container does not ask to build any")
	}
	return untested(found), nil
}

// untested leaves out the image of the version in HOLDFAST_TESTED, which was tested as a local process,
// unless it is the only one.
func untested(found []machine.Flavour) []machine.Flavour {
	version := os.Getenv("HOLDFAST_TESTED")
	if version == "" {
		return found
	}
	left := slices.DeleteFunc(slices.Clone(found), func(f machine.Flavour) bool { return strings.HasSuffix(f.Image, "/redis:"+version) })
	if len(left) == 0 || len(left) == len(found) {
		return found
	}
	machine.SayOnce("no container of Redis " + version + ": HOLDFAST_TESTED says that it was tested before")
	return left
}

// obtain returns those of the images that are here or could be pulled, and an
// error for the others.
func (e *engine) obtain(ctx context.Context, names []string) ([]machine.Flavour, error) {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		wg.Go(func() { errs[i] = e.pull(ctx, names[i]) })
	}
	wg.Wait()
	var found []machine.Flavour
	for i, name := range names {
		if errs[i] == nil {
			found = append(found, machine.Flavour{Runtime: machine.Container, Image: name})
		}
	}
	return found, errors.Join(errs...)
}

// pull brings an image here unless it is here. What cannot be pulled is
// remembered for a while, for other test processes too.
func (e *engine) pull(ctx context.Context, name string) error {
	if e.has(name) {
		return nil
	}
	if reason := machine.Remembered(name); reason != "" {
		return errors.New(reason)
	}
	machine.Say("pulling %s", name)
	repository, tag := docker.ParseRepositoryTag(name)
	if tag == "" {
		tag = "latest"
	}
	err := e.client.PullImage(docker.PullImageOptions{
		Repository: repository, Tag: tag, OutputStream: io.Discard,
		InactivityTimeout: stalledAfter, Context: ctx,
	}, docker.AuthConfiguration{})
	if err == nil && !e.has(name) {
		// The engine reports some failures in the stream of progress only.
		err = errors.New("the engine pulled nothing")
	}
	if err != nil {
		err = fmt.Errorf("pull %s: %w", name, err)
		machine.Remember(name, err.Error())
	}
	return err
}

func (e *engine) has(name string) bool {
	_, err := e.client.InspectImage(name)
	return err == nil
}

// binary returns the server inside an image: what its command runs, or
// redis-server if the command is something else.
func (e *engine) binary(image string) (string, error) {
	about, err := e.client.InspectImage(image)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image, err)
	}
	if about.Config != nil && len(about.Config.Cmd) > 0 {
		if name := about.Config.Cmd[0]; strings.HasSuffix(path.Base(name), "-server") {
			return name, nil
		}
	}
	return "redis-server", nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
