// SPDX-License-Identifier: Apache-2.0

package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const readyWithin = time.Minute

// program is a database server as Debian installs it. In its commands $1 is where its programs are, and
// $2 a directory of its own.
type program struct {
	name, setup string // setup is the program that makes the directory of data
	places      string // where it is, if it is not in PATH
	init, serve string
	driver, dsn string // %s is the directory
}

var programs = []program{{
	name: "postgres", setup: "initdb", places: "/usr/lib/postgresql/*/bin",
	init:   `"$1/initdb" -D "$2/data" -U holdfast -A trust -E UTF8 --locale=C --no-sync`,
	serve:  `"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off`,
	driver: "pgx", dsn: "host=%s user=holdfast dbname=postgres",
}, {
	name: "mariadb", setup: "mariadb-install-db", places: "/usr/bin",
	init: `"$1/mariadb-install-db" --no-defaults --datadir="$2/data" --auth-root-authentication-method=normal`,
	serve: `"$(PATH="$PATH:/usr/sbin" command -v mariadbd)" --no-defaults --datadir="$2/data" --socket="$2/socket" --skip-networking \
--pid-file="$2/pid" --innodb-flush-log-at-trx-commit=0`,
	driver: "mysql", dsn: "root@unix(%s/socket)/test",
}}

// asLongAs runs a server until its standard input ends, so that it also ends with a test that is killed,
// and then removes its directory.
const asLongAs = ` >"$2/log" 2>&1 &
read -r _
kill -TERM $!
wait $!
rm -rf "$2"
`

// databaseServer is a server of our own, at a socket in a temporary directory.
type databaseServer struct {
	program
	problem error // why it does not run

	cmd   *exec.Cmd
	stdin io.Closer
}

var errNotInstalled = errors.New("it is not installed")

// find returns where the programs are. Debian has some outside of PATH.
func (p program) find() (bin string, err error) {
	if path, err := exec.LookPath(p.setup); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob(filepath.Join(p.places, p.setup))
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no %s in PATH or in %s", errNotInstalled, p.setup, p.places)
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// servant returns as whom a server runs, nil for the test's own user: they refuse root.
func servant() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("database servers refuse to run as root: %w", err)
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, errors.Join(errU, errG)
}

// start blocks until the server answers, or has a problem.
func (p program) start() *databaseServer {
	s := &databaseServer{program: p}
	s.problem = s.run()
	return s
}

func (s *databaseServer) run() (err error) {
	bin, err := s.find()
	if err != nil {
		return err
	}
	as, err := servant()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "holdfast-"+s.name+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(), os.RemoveAll(dir))
		}
	}()
	if as != nil {
		if err := os.Chown(dir, int(as.Credential.Uid), int(as.Credential.Gid)); err != nil {
			return err
		}
	}
	command := func(script string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", script, "sh", bin, dir)
		cmd.Dir, cmd.SysProcAttr = dir, as
		return cmd
	}
	if out, err := command(s.init).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.setup, err, out)
	}
	cmd := command(s.serve + asLongAs)
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.dsn = cmd, fmt.Sprintf(s.dsn, dir)
	if err := s.ready(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return fmt.Errorf("%s does not answer: %w\n%s", s.name, err, log)
	}
	return nil
}

func (s *databaseServer) ready() error {
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// stop blocks until the server has ended and its directory is gone.
func (s *databaseServer) stop() error {
	if s.cmd == nil {
		return nil
	}
	return errors.Join(s.stdin.Close(), s.cmd.Wait())
}
