//go:build before_quorum

package main

import "github.com/holdfast-go/holdfast/client"

// openQuorum of a commit that has no package client/quorum: -against sets the tag.
var openQuorum = client.OpenQuorum
