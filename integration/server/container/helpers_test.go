package container

import (
	"fmt"

	"github.com/ory/dockertest/v3/docker"
)

// publishPorts makes the engine look like one without a host network, until
// restore.
func publishPorts() (restore func(), err error) {
	e, err := connect()
	if err != nil {
		return nil, err
	}
	was := e.hostNetwork
	e.hostNetwork = false
	return func() { e.hostNetwork = was }, nil
}

// leave makes a container of an image as a process would have that has another
// id and was killed, and reap cleans up behind it.
func leave(image string, pid int) error {
	e, err := connect()
	if err != nil {
		return err
	}
	marks := labels()
	marks[labelOwner] = fmt.Sprint(pid)
	_, err = e.client.CreateContainer(docker.CreateContainerOptions{Config: &docker.Config{Image: image, Labels: marks}})
	return err
}

// reap is what the first use of the engine does.
func reap() error {
	e, err := connect()
	if err != nil {
		return err
	}
	return e.reap()
}
