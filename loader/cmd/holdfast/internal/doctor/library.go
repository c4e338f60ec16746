// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

// library puts what verify found of one of the libraries into words.
func (n *node) library(name, version string, r loader.NodeReport) {
	load := "holdfast load"
	if name == functions.FencedLibrary {
		load = "holdfast load --library fenced"
	}
	if n.role == cluster.Replica {
		load = "see why it does not follow its primary (INFO replication); if that lacks it too, " + load
	}
	if errors.Is(r.Err, loader.ErrContract) {
		load += " --force, when nobody uses the older one any more"
	}
	switch r.Action {
	case loader.Missing:
		n.without = true
		n.find("library-missing", load, "the %s has no library %s", cmp.Or(string(r.Role), "node"), name) // without ROLE
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
			n.refused[forbidden(r.Err)] = "NOPERM"
			return
		}
		n.find("server-version", "upgrade to Redis 7.0 or later, or take rename-command FUNCTION away", "%s", r.Detail)
	}
}

// listed looks for the libraries where verify could not: it asks for the topology first, which was refused.
func (n *node) listed(ctx context.Context) {
	all, err := n.do(ctx, "FUNCTION", "LIST", "WITHCODE").ToArray()
	if !n.sees("FUNCTION LIST", err) {
		return
	}
	codes := map[string]string{}
	for _, lib := range all {
		about, _ := lib.AsMap()
		name, code := about["library_name"], about["library_code"]
		text, _ := name.ToString()
		codes[text], _ = code.ToString()
	}
	if codes[functions.Library] == "" {
		n.library(functions.Library, functions.Version, loader.NodeReport{Action: loader.Missing})
	}
	for name, source := range map[string]string{functions.Library: functions.Source, functions.FencedLibrary: functions.FencedSource} {
		if code := codes[name]; code != "" && code != source {
			n.find("library-differs", "examine as an administrator, who sees its version", "the library %s is not this command's", name)
		}
	}
}

// engine looks where the library is missing: from 9.1 on Valkey can be built without Lua.
func (n *node) engine(ctx context.Context) {
	if !n.without {
		return
	}
	stats, err := n.do(ctx, "FUNCTION", "STATS").AsMap()
	if !n.sees("FUNCTION STATS", err) {
		return
	}
	n.engines(stats)
}

func (n *node) engines(stats map[string]rueidis.RedisMessage) {
	all := stats["engines"]
	known, err := all.AsMap()
	if err != nil {
		return
	}
	for name := range known {
		if strings.EqualFold(name, "lua") {
			return
		}
	}
	n.find("engine-missing", "load the server's Lua module, or run a build that has it", "the server has no engine LUA")
}

// forbidden is the command that the loader failed at: it asks for the topology first.
func forbidden(err error) string {
	var node *loader.NodeError
	switch {
	case errors.As(err, &node):
		return "FUNCTION LIST"
	case strings.Contains(err.Error(), "CLUSTER NODES"):
		return "CLUSTER NODES"
	}
	return "ROLE"
}
