// Package container runs servers in containers, through ory/dockertest. A program or test that imports it, if
// only for that, has package server use containers where the machine has an engine.
package container

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/holdfast-go/holdfast/integration/server/internal/machine"
)

func init() {
	machine.Containers = &machine.Engine{Flavours: containers, Shared: shared, New: newContainer}
}

// Every container carries the process and the machine that started it.
const (
	labelOwner = "holdfast.owner"
	labelHost  = "holdfast.host"
)

// engine is the container engine of this machine.
type engine struct {
	client *docker.Client
	// hostNetwork: containers share the loopback interface of this machine, so
	// that a server has one address for all. Elsewhere (Docker Desktop) ports
	// are published, which serves a single server only: members of a Cluster
	// would tell each other addresses that are wrong inside the containers.
	hostNetwork bool
}

// connect returns the engine, or why there is none. The first call removes
// what processes that were killed left behind.
var connect = sync.OnceValues(func() (*engine, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	endpoint := pool.Client.Endpoint()
	if !strings.HasPrefix(endpoint, "unix://") {
		return nil, fmt.Errorf("the container engine at %s is not on this machine", endpoint)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := pool.Client.PingWithContext(ctx); err != nil {
		return nil, fmt.Errorf("no container engine answers at %s: %w", endpoint, err)
	}
	about, err := pool.Client.Info()
	if err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	e := &engine{client: pool.Client}
	e.hostNetwork = runtime.GOOS == "linux" && !strings.Contains(about.OperatingSystem, "Docker Desktop")
	return e, e.reap()
})

// shared returns why servers in containers cannot talk to each other, if they cannot.
func shared() (not string, err error) {
	e, err := connect()
	if err == nil && !e.hostNetwork {
		not = "this container engine has no host network"
	}
	return not, err
}

// reap removes containers whose process is gone.
func (e *engine) reap() error {
	host, _ := os.Hostname()
	list, err := e.client.ListContainers(docker.ListContainersOptions{
		All:     true,
		Filters: map[string][]string{"label": {labelOwner, labelHost + "=" + host}},
	})
	if err != nil {
		return fmt.Errorf("container engine: %w", err)
	}
	for _, c := range list {
		pid, err := strconv.Atoi(c.Labels[labelOwner])
		if err == nil && syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		// Another process can be removing it at the same time.
		_ = e.remove(c.ID)
	}
	return nil
}

func (e *engine) remove(id string) error {
	err := e.client.RemoveContainer(docker.RemoveContainerOptions{ID: id, Force: true, RemoveVolumes: true})
	if _, gone := err.(*docker.NoSuchContainer); gone {
		return nil
	}
	return err
}

// Count returns how many containers a process of this machine has.
func Count(pid int) (int, error) {
	e, err := connect()
	if err != nil {
		return 0, err
	}
	list, err := e.client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {fmt.Sprintf("%s=%d", labelOwner, pid)}},
	})
	return len(list), err
}

func labels() map[string]string {
	host, _ := os.Hostname()
	return map[string]string{labelOwner: strconv.Itoa(os.Getpid()), labelHost: host}
}
