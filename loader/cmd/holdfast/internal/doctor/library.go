package doctor

import (
	"errors"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

// library puts what verify found of one of the libraries into words.
func (n *node) library(name, version string, r loader.NodeReport) {
	load := "holdfast load"
	if name == functions.GuardLibrary {
		load = "redis-cli -x FUNCTION LOAD REPLACE < functions/guard.lua"
	}
	if n.role == cluster.Replica {
		load = "see why it does not follow its primary (INFO replication); if that lacks it too, " + load
	}
	switch r.Action {
	case loader.Missing:
		n.find("library-missing", load, "the %s has no library %s", r.Role, name)
	case loader.Outdated:
		n.find("library-outdated", load, "library %s is %s, this command's is %s", name, r.After, version)
	case loader.Differs:
		n.find("library-differs", load, "the code of library %s %s was changed", name, r.After)
	case loader.Newer:
		n.find("library-newer", "use the holdfast command of that release",
			"library %s is %s, this command's is %s", name, r.After, version)
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
