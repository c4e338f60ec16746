// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/fence"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// job is that of a writer in another process, without Go's package: it claims by the page's statement.
type job struct {
	Driver, DSN, Claim string
	Token              int64
}

// writer does a line of its transaction whenever its parent says so, and never commits.
func writer(p *reexec.Parent) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	db, err := sql.Open(j.Driver, j.DSN)
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for _, line := range []struct {
		statement string
		args      []any
	}{
		{j.Claim, []any{"lock:stock:7", j.Token}},
		{"UPDATE stock SET remaining = 1 WHERE id = 7", nil},
		{"DELETE FROM sold", nil},
	} {
		p.Say("next")
		if _, err := p.Hear(); err != nil {
			return err
		}
		if _, err := tx.Exec(line.statement, line.args...); err != nil {
			return err
		}
	}
	p.Say("next")
	_, err = p.Hear()
	return err
}

// A writer that is killed behind any of its lines leaves nothing, and nobody waits for it: the next holder
// claims at once, and so does an older one if nobody else has.
func TestAKilledWriterLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		for made := range 4 {
			holders := late(t, 3, "stock:7")
			require.NoError(t, d.sells(holders[0]))
			before := d.remaining()
			child := reexec.Spawn(t, "writer", job{d.driver, d.dsn, d.plainClaim(), client.Fence(holders[2])})
			child.Hear("next")
			for range made {
				child.Say("go")
				child.Hear("next")
			}
			child.Kill()
			ctx, cancel := context.WithTimeout(holders[1], soon)
			require.NoError(t, d.sells(ctx), "behind line %d", made)
			cancel()
			require.Equal(t, before-1, d.remaining())
			require.ErrorIs(t, d.sells(holders[0]), fence.ErrStale)
		}
	})
}
