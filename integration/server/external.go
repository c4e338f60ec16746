// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/redis/rueidis"
)

func externalURL() string { return os.Getenv("HOLDFAST_REDIS") }

// startExternal makes a deployment of the server at HOLDFAST_REDIS, which must
// answer.
func startExternal(ctx context.Context, spec Spec) (*Deployment, error) {
	url := externalURL()
	if url == "" {
		return nil, fmt.Errorf("server: HOLDFAST_REDIS is not set")
	}
	if !strings.Contains(url, "://") {
		url = "redis://" + url
	}
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("server: HOLDFAST_REDIS: %w", err)
	}
	n := &Node{Addr: option.InitAddress[0], Role: RolePrimary, external: &option}
	d := &Deployment{Kind: spec.Kind, Flavour: spec.Flavour, nodes: []*Node{n}, external: &option}
	version := n.Info(ctx, "server", "redis_version")
	if version == "" {
		_, err := n.Do(ctx, "PING")
		return nil, fmt.Errorf("server: HOLDFAST_REDIS at %s gives no version: %w", n.Addr, err)
	}
	sayOnce(fmt.Sprintf("HOLDFAST_REDIS at %s, version %s", n.Addr, version))
	return d, nil
}
