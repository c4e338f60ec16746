// SPDX-License-Identifier: Apache-2.0

// Package assembly is what package quorum gives to package client: a Client over something else than
// one deployment is made of it.
package assembly

import "github.com/holdfast-go/holdfast/client/internal/fcall"

// Parts are those of a Client that does not talk to one deployment.
type Parts struct {
	Backend fcall.Backend
	Stop    func(cause error) // ends the calls that somebody waits for
	Close   func()            // ends the rest; blocks until that is done
}
