//go:build !before_quorum

package main

import "github.com/holdfast-go/holdfast/client/quorum"

var openQuorum = quorum.Open
