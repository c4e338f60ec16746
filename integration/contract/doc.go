// SPDX-License-Identifier: Apache-2.0

// Package contract holds the tests of the functions library as callers of any
// language see it: raw FCALL over a plain connection, on every server of the
// matrix. What they hold the library to is functions/README.md.
package contract
