// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA4006 errors are used as the page does it

package holdfastcertmagic_test

import (
	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/client"
	holdfastcertmagic "github.com/holdfast-go/holdfast/client/adapter/certmagic"
)

// page is the code of docs/adapters.md, which leaves errors to the reader: it compiles.
func page(c *client.Client, dir string) {
	certmagic.Default.Storage = holdfastcertmagic.NewStorage(c, &certmagic.FileStorage{Path: dir})
}

var _ = page
