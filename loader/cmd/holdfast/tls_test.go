// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// authority signs certificates for one test, and keeps them as files.
type authority struct {
	t      *testing.T
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	pool   *x509.CertPool
	serial int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir(), pool: x509.NewCertPool()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes name.crt and name.key. The first certificate signs itself.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.serial++
	template.SerialNumber, template.Subject = big.NewInt(a.serial), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	require.NoError(a.t, os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// terminate accepts TLS connections and passes what they say on to a server, until the test ends.
func terminate(t *testing.T, addr string, config *tls.Config) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(conn, addr) })
		}
	})
	return listener.Addr().String()
}

func pass(conn net.Conn, addr string) {
	defer conn.Close()
	upstream, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(upstream, conn)
		_ = upstream.Close()
	}()
	_, _ = io.Copy(conn, upstream)
	_ = conn.Close()
	<-done
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue("server", &x509.Certificate{DNSNames: []string{"redis.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	pair, err := tls.LoadX509KeyPair(a.file("server.crt"), a.file("server.key"))
	require.NoError(t, err)
	d := server.Single(t, server.Owned())
	addr := terminate(t, d.Addrs()[0], &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.pool, ClientAuth: tls.VerifyClientCertIfGiven})
	mutual := terminate(t, d.Addrs()[0], &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert})

	trust := []string{"--tls-ca", a.file("ca.crt"), "--tls-server-name", "redis.example"}
	known := []string{"--tls-cert", a.file("client.crt"), "--tls-key", a.file("client.key")}
	for _, c := range []struct {
		name, addr string
		flags      []string
		code       int
	}{
		{"plain", addr, nil, 1},
		{"unknown authority", addr, []string{"--tls"}, 1},
		{"wrong name", addr, trust[:2], 1},
		{"unsafe", addr, []string{"--tls-skip-verify"}, 0},
		{"trusted", addr, trust, 0},
		{"URL, unknown authority", "rediss://" + addr, nil, 1},
		{"URL, trusted", "rediss://" + addr, trust, 0},
		{"URL, unsafe", "rediss://" + addr, []string{"--tls-skip-verify"}, 0},
		{"no client certificate", mutual, trust, 1},
		{"client certificate", mutual, append(trust[:4:4], known...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, command := range []string{"load", "ls"} {
				r := holdfast(t, nil, append([]string{command, "--timeout", "1m", "--addr", c.addr}, c.flags...)...)
				require.Equal(t, c.code, r.code, r)
			}
		})
	}
}
