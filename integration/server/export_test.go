package server

import (
	"fmt"

	"github.com/ory/dockertest/v3/docker"
)

// Containers counts the containers of a process.
func Containers(pid int) (int, error) {
	e, err := connect()
	if err != nil {
		return 0, err
	}
	list, err := e.client.ListContainers(docker.ListContainersOptions{
		All: true, Filters: map[string][]string{"label": {fmt.Sprintf("%s=%d", labelOwner, pid)}},
	})
	return len(list), err
}

// PublishPorts makes the engine look like one without a host network, until
// restore.
func PublishPorts() (restore func(), err error) {
	e, err := connect()
	if err != nil {
		return nil, err
	}
	was := e.hostNetwork
	e.hostNetwork = false
	return func() { e.hostNetwork = was }, nil
}

// Leave makes a container of an image as a process would have that has another
// id and was killed, and Reap cleans up behind it.
func Leave(image string, pid int) error {
	e, err := connect()
	if err != nil {
		return err
	}
	marks := labels()
	marks[labelOwner] = fmt.Sprint(pid)
	_, err = e.client.CreateContainer(docker.CreateContainerOptions{Config: &docker.Config{Image: image, Labels: marks}})
	return err
}

// Reap is what the first use of the engine does.
func Reap() error {
	e, err := connect()
	if err != nil {
		return err
	}
	return e.reap()
}
