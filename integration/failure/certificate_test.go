package failure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The certificates of a server and of its clients end, and are renewed before. Connections that stand
// go on. New ones use the new certificates, and no lock is lost. A client that still has the old one
// is told why it cannot connect.
func TestCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		node, issuer := b.D.Nodes()[0], newAuthority(t)
		const valid = 10 * time.Second // in which all connect, on a busy machine too
		text, key := issuer.leaf(t, valid)
		ends := time.Now().Add(valid)
		addr, err := node.ServeTLS(b.Ctx, text, key, issuer.text)
		if errors.Is(err, server.ErrNoTLS) {
			t.Skip(err)
		}
		require.NoError(t, err)
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err != nil {
			t.Skipf("the port for TLS cannot be reached, as that of a container without the host's network: %v", err)
		} else {
			require.NoError(t, conn.Close())
		}

		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM([]byte(issuer.text)))
		var ours atomic.Pointer[tls.Certificate] // what a file that is renewed would be
		var theirs atomic.Int64                  // the serial number that the server showed last
		renew := func() {
			text, key := issuer.leaf(t, time.Until(ends))
			pair, err := tls.X509KeyPair([]byte(text), []byte(key))
			require.NoError(t, err)
			ours.Store(&pair)
		}
		renew()
		old := *ours.Load()
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
		cfg := client.Config{Lease: 3 * time.Second, RenewEvery: 200 * time.Millisecond}
		w := b.crew(option(ours.Load), cfg)
		forgetful := b.Connect(option(func() *tls.Certificate { return &old }), cfg)
		l := b.Take(forgetful, "forgotten")

		first, expired := theirs.Load(), ends
		ends = time.Now().Add(time.Hour)
		text, key = issuer.leaf(t, time.Hour)
		_, err = node.ServeTLS(b.Ctx, text, key, issuer.text)
		require.NoError(t, err)
		renew()
		b.Eventually("the old ones have ended", func() bool { return time.Now().After(expired.Add(time.Second)) })
		require.NoError(t, l.Context().Err(), "its connection stands")
		require.Empty(t, w.load.failed)
		_, err = node.Do(b.Ctx, "CLIENT", "KILL", "TYPE", "normal")
		require.NoError(t, err)
		_, err = node.Do(b.Ctx, "CLIENT", "KILL", "TYPE", "pubsub")
		require.NoError(t, err)
		b.Eventually("told why", func() bool {
			_, err := forgetful.TryAcquire(b.Ctx, "a")
			require.ErrorIs(t, err, client.ErrUnreachable)
			return strings.Contains(err.Error(), "expired certificate")
		})
		b.Eventually("its clients are back", func() bool { return w.held[0].Renew(b.Ctx) == nil })
		require.Greater(t, theirs.Load(), first, "the new certificate")
		require.ErrorIs(t, b.Ended(l.Context()), client.ErrExpired)
		w.load.end()
		t.Logf("%d locks taken and given back, %d calls failed", w.load.turns.Load(), len(w.load.failed))
		for _, err := range w.load.failed {
			assert.ErrorIs(t, err, client.ErrUnreachable)
		}
		w.check(t)
	})
}
