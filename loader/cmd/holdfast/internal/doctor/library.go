package doctor

import (
	"errors"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

// library puts what verify found into words.
func (n *node) library(r loader.NodeReport) {
	load := "holdfast load"
	if n.role == cluster.Replica {
		load = "see why it does not follow its primary (INFO replication), or holdfast load if the primary lacks it too"
	}
	switch r.Action {
	case loader.Missing:
		n.find("library-missing", load, "the %s has no library", r.Role)
	case loader.Outdated:
		n.find("library-outdated", load, "the library is %s, this command's %s", r.After, functions.Version)
	case loader.Differs:
		n.find("library-differs", load, "the code of %s was changed", r.After)
	case loader.Newer:
		n.find("library-newer", "use the holdfast command of that release",
			"the library is %s, this command's %s", r.After, functions.Version)
	case loader.Foreign:
		n.find("library-foreign", "FUNCTION DELETE what is not Holdfast's, or holdfast load --force", "%s", r.Detail)
	case loader.Failed:
		if errors.Is(r.Err, loader.ErrPermission) {
			n.find("not-checked", "examine as a user with what \"holdfast acl --for loader\" prints",
				"the library and the topology: %s", r.Err)
		} else {
			n.find("server-version", "upgrade to Redis 7.0 or later, or take rename-command FUNCTION away", "%s", r.Detail)
		}
	}
}
