package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNoTLS says that a server was built without TLS.
var ErrNoTLS = errors.New("the server was built without TLS")

// ServeTLS makes the node serve TLS, at the address that it returns, beside what
// it serves already. Clients must show a certificate of the same authority. All
// three are PEM texts. A second call replaces them, for connections to come.
func (n *Node) ServeTLS(ctx context.Context, certificate, key, authority string) (addr string, err error) {
	n.mu.Lock()
	if n.tlsPort == 0 {
		n.tlsPort, err = freePort()
	}
	port := n.tlsPort
	n.mu.Unlock()
	if err != nil {
		return "", err
	}
	command := []string{"CONFIG", "SET"}
	for _, file := range [][2]string{{"tls-cert-file", certificate}, {"tls-key-file", key}, {"tls-ca-cert-file", authority}} {
		path, err := n.Put(file[0]+".pem", file[1])
		if err != nil {
			return "", err
		}
		command = append(command, file[0], path)
	}
	err = n.run(ctx, append(command, "tls-port", strconv.Itoa(port))...)
	if err != nil && strings.Contains(err.Error(), "Unknown option") {
		return "", fmt.Errorf("server: %w: %w", ErrNoTLS, err)
	}
	return address(port), err
}
