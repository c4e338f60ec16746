package failure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority issues certificates for servers on this machine and for their clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	text        string // PEM
	issued      int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, issued: 1}
	a.text, _ = a.issue(t, a.certificate)
	return a
}

// issue signs a certificate, or the authority's own, and returns it with its key, as PEM.
func (a *authority) issue(t *testing.T, certificate *x509.Certificate) (text, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	if a.key == nil {
		a.key = private
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

// leaf issues the next certificate for a server, or for a client, of 127.0.0.1.
func (a *authority) leaf(t *testing.T, valid time.Duration) (text, key string) {
	t.Helper()
	a.issued++
	return a.issue(t, &x509.Certificate{
		SerialNumber: big.NewInt(a.issued), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}
