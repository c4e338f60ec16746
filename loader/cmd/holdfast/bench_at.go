package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// surroundings say what was measured, for those who compare runs.
type surroundings struct {
	Deployment string   `json:"deployment"` // single, sentinel, cluster or quorum
	Addrs      []string `json:"addrs"`
	Servers    []string `json:"servers"` // each kind and version once, as "redis 8.2.1"
	Library    string   `json:"library"` // on the servers
	Client     string   `json:"client"`  // the version of this command's module
}

func (a *app) surroundings(ctx context.Context, quorum bool, c *client.Client) (surroundings, error) {
	at := surroundings{Deployment: "single", Addrs: a.cfg.addrs, Client: moduleVersion()}
	version, err := c.Version(ctx)
	if err != nil {
		return at, err
	}
	at.Library = version
	if quorum {
		at.Deployment = "quorum"
		for _, addr := range a.cfg.addrs {
			if one, err := rueidis.NewClient(a.quorumOption(addr)); err == nil {
				at.add(ctx, one)
				one.Close()
			}
		}
		return at, nil
	}
	// On a connection of its own: a client whose Redis is asked for gives up ways to be fast.
	option, err := theDeployment(ctx, &a.cfg)
	if err != nil {
		return at, err
	}
	redis, err := within(ctx, func() (rueidis.Client, error) { return rueidis.NewClient(option) })
	if err != nil {
		return at, fmt.Errorf("%w: %w", errConnecting, err)
	}
	defer redis.Close()
	switch {
	case a.cfg.master != "":
		at.Deployment = "sentinel"
	case redis.Mode() == rueidis.ClientModeCluster:
		at.Deployment = "cluster"
	}
	for _, node := range redis.Nodes() {
		at.add(ctx, node)
	}
	slices.Sort(at.Servers)
	return at, nil
}

// add asks a server what it is. HELLO needs no permission. One that does not answer adds nothing: what
// that means for locks is measured.
func (at *surroundings) add(ctx context.Context, redis rueidis.Client) {
	said, err := redis.Do(ctx, redis.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return
	}
	kind, version := said["server"], said["version"]
	name, _ := kind.ToString()
	number, _ := version.ToString()
	text := printable(fmt.Sprintf("%s %s", name, number))
	if !slices.Contains(at.Servers, text) {
		at.Servers = append(at.Servers, text)
	}
}

func (a *app) quorumOption(addr string) rueidis.ClientOption {
	option := a.cfg.option(addr)
	option.ForceSingleClient, option.DisableRetry = true, true
	return option
}

// moduleVersion is that of the build, or else of the library in this command.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return functions.Version
}

func (at surroundings) String() string {
	return fmt.Sprintf("%s, %s, at %s, library %s", strings.Join(at.Servers, " and "), at.Deployment,
		strings.Join(at.Addrs, ","), at.Library)
}
