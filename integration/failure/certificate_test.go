package failure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// authority issues certificates for servers on this machine and for their clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	issued      int64
}

// issue signs the next certificate, the first one by itself, and returns it with its key, as PEM.
func (a *authority) issue(t *testing.T, ends time.Time) (text, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.issued++
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: fmt.Sprint("test ", a.issued)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        a.issued == 1, BasicConstraintsValid: true,
	}
	if certificate.IsCA {
		a.certificate, a.key = certificate, private
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, a.certificate, &private.PublicKey, a.key)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	encode := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return encode("CERTIFICATE", signed), encode("PRIVATE KEY", bytes)
}

// The certificates of a server and of its clients end, and are renewed before. Connections that stand
// go on. New ones use the new certificates, and no lock is lost. A client that still has the old one
// is told why it cannot connect.
func TestCertificatesAreRenewed(t *testing.T) {
	onEach(t, func(t *testing.T, b *bed) {
		node, issuer := b.D.Nodes()[0], &authority{}
		later := time.Now().Add(time.Hour)
		root, _ := issuer.issue(t, later)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM([]byte(root)))
		var ours atomic.Pointer[tls.Certificate] // what a file that is renewed would be
		var theirs atomic.Int64                  // the serial number that the server showed last
		renew := func(ends time.Time) string {
			text, key := issuer.issue(t, ends)
			addr, err := node.ServeTLS(b.Ctx, text, key, root)
			if errors.Is(err, server.ErrNoTLS) {
				t.Skip(err)
			}
			require.NoError(t, err)
			text, key = issuer.issue(t, ends)
			pair, err := tls.X509KeyPair([]byte(text), []byte(key))
			require.NoError(t, err)
			ours.Store(&pair)
			return addr
		}
		ends := time.Now().Add(10 * time.Second) // until then all connect, on a busy machine too
		addr := renew(ends)
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err != nil {
			t.Skipf("the port for TLS cannot be reached, as that of a container without the host's network: %v", err)
		} else {
			require.NoError(t, conn.Close())
		}
		old := ours.Load()
		option := func(own func() *tls.Certificate) rueidis.ClientOption {
			return rueidis.ClientOption{InitAddress: []string{addr}, TLSConfig: &tls.Config{
				RootCAs:              roots,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own(), nil },
				VerifyConnection: func(s tls.ConnectionState) error {
					theirs.Store(s.PeerCertificates[0].SerialNumber.Int64())
					return nil
				},
			}}
		}
		w := b.crew(b.connecting(option(ours.Load), brisk))
		forgetful := b.Connect(option(func() *tls.Certificate { return old }), brisk)
		l := b.Take(forgetful, "forgotten")

		first := theirs.Load()
		renew(later)
		b.Eventually("the old ones have ended", func() bool { return time.Now().After(ends.Add(time.Second)) })
		require.NoError(t, l.Context().Err(), "its connection stands")
		require.Zero(t, w.failures())
		b.hangUp(node)
		b.Eventually("told why", func() bool {
			_, err := forgetful.TryAcquire(b.Ctx, "a")
			require.ErrorIs(t, err, client.ErrUnreachable)
			return strings.Contains(err.Error(), "expired certificate")
		})
		b.Eventually("its clients are back", func() bool { return w.held[0].Renew(b.Ctx) == nil })
		require.Greater(t, theirs.Load(), first, "the new certificate")
		require.ErrorIs(t, b.Ended(l.Context()), client.ErrExpired)
		w.check(t, 4, client.ErrUnreachable)
	})
}
