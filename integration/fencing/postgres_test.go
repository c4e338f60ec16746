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

	_ "github.com/jackc/pgx/v5/stdlib"
)

const readyWithin = time.Minute

// serve runs a server until its standard input ends, so that it also ends with a test that is
// killed, and then removes its directory.
const serve = `
"$1" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off >"$2/log" 2>&1 &
read -r _
kill -INT $!
wait $!
rm -rf "$2"
`

// postgres is a server of our own, at a socket in a temporary directory.
type postgres struct {
	dsn   string
	cmd   *exec.Cmd
	stdin io.Closer
}

var errNotInstalled = errors.New("PostgreSQL is not installed: no initdb in PATH or in /usr/lib/postgresql/*/bin")

// find returns where the programs of PostgreSQL are. Debian has them outside of PATH.
func find() (bin string, err error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errNotInstalled
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// servant returns as whom the server runs, nil for the test's own user. PostgreSQL refuses root.
func servant() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root: %w", err)
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, errors.Join(errU, errG)
}

// startPostgres blocks until the server answers.
func startPostgres() (p *postgres, err error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	as, err := servant()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "holdfast-postgres-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if as != nil {
		if err := os.Chown(dir, int(as.Credential.Uid), int(as.Credential.Gid)); err != nil {
			return nil, err
		}
	}
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"),
		"-U", "holdfast", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	init.Dir, init.SysProcAttr = dir, as
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd := exec.Command("/bin/sh", "-c", serve, "sh", filepath.Join(bin, "postgres"), dir)
	cmd.Dir, cmd.SysProcAttr = dir, as
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p = &postgres{dsn: "host=" + dir + " user=holdfast dbname=postgres", cmd: cmd, stdin: stdin}
	if err := p.ready(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, log), p.stop())
	}
	return p, nil
}

func (p *postgres) ready() error {
	db, err := sql.Open("pgx", p.dsn)
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
func (p *postgres) stop() error {
	return errors.Join(p.stdin.Close(), p.cmd.Wait())
}
