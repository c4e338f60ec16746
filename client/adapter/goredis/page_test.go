// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastgoredis_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoredis "github.com/holdfast-go/holdfast/client/adapter/goredis"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(opts *redis.UniversalOptions) {
	option, err := holdfastgoredis.Universal(opts, holdfastgoredis.WithoutTuning()) // opts *redis.UniversalOptions
	c, err := client.Open(option, client.Config{})
	_, _ = c, err
}

var _ = page
