// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/client/fence"
)

// In PostgreSQL a function belongs to a role, and only that one can replace it. Applications of several roles
// may share a schema.
func TestATriggerSharesNoFunctionWithOtherTables(t *testing.T) {
	trigger := fence.PostgreSQL.Trigger(`shop."order"`)
	if n := strings.Count(trigger, `FUNCTION shop."order_holdfast_fence"()`); n != 2 {
		t.Errorf("its function is named %d times:\n%s", n, trigger)
	}
}
