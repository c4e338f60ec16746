// Command serve serves a node of package redis on a TCP port, so that the contract's tests can be
// run against it:
//
//	go run ./internal/serve -addr 127.0.0.1:6390 &
//	HOLDFAST_REDIS=127.0.0.1:6390 go test ./integration/contract
//
// It also takes the place of a redis-server without persistence and replicas, for tests that want a
// server of their own:
//
//	go build -o /tmp/serve ./internal/serve
//	HOLDFAST_RUNTIME=local HOLDFAST_SERVERS=/tmp/serve go test ./integration/contract
//
// That is what make test-embedded does.
//
// HOLDFAST_EMBEDDED (0: Redis 7.0, 1: Redis 8.0, 2: Valkey) says which server it imitates.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

func main() {
	log.SetPrefix("serve: ")
	log.SetFlags(0)
	addr := flag.String("addr", "127.0.0.1:6390", "where to listen, without a configuration file")
	version := flag.Bool("version", false, "say the version as redis-server does")
	flag.Parse()
	flavour, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_EMBEDDED"), "0"))
	if err != nil || flavour < int(redis.Redis70) || flavour > int(redis.Valkey) {
		log.Fatalf("HOLDFAST_EMBEDDED must be 0, 1 or 2, not %q", os.Getenv("HOLDFAST_EMBEDDED"))
	}
	if *version {
		fmt.Println([]string{"Redis server v=7.0.15", "Redis server v=8.0.2", "Valkey server v=8.1.1"}[flavour], "sha=00000000:0 malloc=go bits=64 build=embedded")
		return
	}
	users := [][]string(nil)
	if flag.NArg() > 0 {
		*addr, users = configured(flag.Arg(0))
	}
	serve(*addr, flag.Arg(0), redis.Flavour(flavour), users)
}

func serve(addr, config string, flavour redis.Flavour, users [][]string) {
	w := redis.New(redis.Options{Flavour: flavour, ConfigFile: config, Unmodelled: func(node, text string) {
		log.Printf("%s is asked for what is not modelled: %s", node, text)
	}})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Fatal(err)
	}
	n := w.Node(l.Addr().String())
	for _, u := range users {
		n.SetUser(u[0], u[1:]...)
	}
	log.Fatal(n.Serve(l))
}

// without are directives that change nothing here, and the values that say so.
var without = map[string][]string{
	"save": {`""`}, "appendonly": {"no"}, "enable-debug-command": {"yes"}, "repl-diskless-sync": nil, "repl-diskless-sync-delay": nil,
	"repl-ping-replica-period": nil, "dir": nil, "logfile": nil, "daemonize": {"no"}, "protected-mode": nil, "unixsocket": nil, "pidfile": nil,
}

// configured reads what it needs of a redis.conf, and refuses what it cannot do.
func configured(path string) (addr string, users [][]string) {
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	host, port := "127.0.0.1", ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}
		values, known := without[words[0]]
		switch {
		case words[0] == "port":
			port = words[1]
		case words[0] == "bind":
			host = words[1]
		case words[0] == "user":
			users = append(users, words[1:])
		case words[0] == "requirepass":
			users = append(users, []string{"default", "resetpass", ">" + words[1]})
		case !known || len(values) > 0 && !slices.Contains(values, words[1]):
			log.Fatalf("%s: not modelled: %s", path, strings.TrimSpace(line))
		}
	}
	return net.JoinHostPort(host, port), users
}
