// SPDX-License-Identifier: Apache-2.0

package holdfastcertmagic_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/holdfast-go/holdfast/client"
	holdfastcertmagic "github.com/holdfast-go/holdfast/client/adapter/certmagic"
	"github.com/holdfast-go/holdfast/client/locktest"
)

const name = "issue_cert_example.com"

// The contract of certmagic.Locker and TryLocker, by one process and by two.
func TestLocker(t *testing.T) {
	for kind, processes := range map[string]int{"goroutines": 1, "processes": 2} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := locktest.New(t)
				here := storage(t, s)
				there := here
				if processes == 2 {
					there = storage(t, s)
				}
				if err := here.Lock(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				if ok, err := there.TryLock(t.Context(), name); ok || err != nil {
					t.Errorf("TryLock of a held lock returned %v, %v", ok, err)
				}
				if err := there.Lock(t.Context(), name+".au"); err != nil { // another name
					t.Error(err)
				}
				// a wait honours its context
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := there.Lock(ctx, name); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Lock of a held lock returned %v", err)
				}
				cancel()
				if err := there.Lock(ctx, name+".com"); err == nil {
					t.Error("Lock with a context that is over took the lock")
				}
				// and ends with the release, a long time later
				waited := make(chan error, 1)
				go func() { waited <- there.Lock(t.Context(), name) }()
				time.Sleep(time.Hour)
				synctest.Wait()
				select {
				case err := <-waited:
					t.Fatalf("two have the lock: %v", err)
				default:
				}
				released := time.Now()
				if err := here.Unlock(t.Context(), name); err != nil {
					t.Error(err)
				}
				if err := <-waited; err != nil {
					t.Error(err)
				}
				if took := time.Since(released); took > 100*time.Millisecond {
					t.Errorf("the next one waited for %v", took)
				}
				if err := there.Unlock(t.Context(), name); err != nil {
					t.Error(err)
				}
				if ok, err := here.TryLock(t.Context(), name); !ok || err != nil {
					t.Errorf("TryLock of a free lock returned %v, %v", ok, err)
				}
				if err := here.Unlock(t.Context(), name); err != nil {
					t.Error(err)
				}
				if err := here.Unlock(t.Context(), name); !errors.Is(err, client.ErrNotHeld) {
					t.Errorf("a second Unlock returned %v", err)
				}
				s.Free("certmagic:" + name)
			})
		})
	}
}

// The context of a Lock may end before its work does; certmagic unlocks with another one.
func TestALockOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		st := storage(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		if err := st.Lock(ctx, name); err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		if err := st.RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Error(err)
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
	})
}

func TestALostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		st := storage(t, s)
		if err := st.RenewLockLease(t.Context(), name, time.Minute); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("RenewLockLease without a lock returned %v", err)
		}
		if err := st.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := st.RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Error(err)
		}
		s.Delete("certmagic:" + name)
		if err := st.RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Errorf("RenewLockLease of a lost lock returned %v", err)
		}
		if !s.Inspect("certmagic:" + name).Held {
			t.Error("RenewLockLease did not take a lost lock again")
		}
		// Another goroutine has it next. The first one's Unlock gives back nothing of that, and returns
		// nil: certmagic would count the lock as held.
		s.Delete("certmagic:" + name)
		if err := st.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Errorf("the first Unlock returned %v", err)
		}
		if !s.Inspect("certmagic:" + name).Held {
			t.Error("the first Unlock gave back the second lock")
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
		s.Free("certmagic:" + name)
	})
}

// A lost lock is waited for, by one goroutine or by two: one has it at a time, and in the end it is free.
func TestALostLockIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		st := storage(t, s)
		if err := st.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		giveBack := s.Take("certmagic:"+name, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := st.RenewLockLease(ctx, name, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("RenewLockLease of a lock that another has returned %v", err)
		}
		giveBack()
		if err := st.RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Errorf("RenewLockLease of a lock that another had returned %v", err)
		}
		// Two goroutines: the first one's lock is lost, and the second one asks for its lease before it.
		s.Delete("certmagic:" + name)
		time.Sleep(time.Minute)
		if err := st.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() { second <- st.RenewLockLease(t.Context(), name, time.Minute) }()
		time.Sleep(time.Minute)
		if err := st.RenewLockLease(t.Context(), name, time.Minute); err != nil {
			t.Error(err)
		}
		select {
		case err := <-second:
			t.Fatalf("both go on: %v", err)
		default:
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
		s.Free("certmagic:" + name)
	})
}

// After a loss between two tries certmagic obtains the certificate at the next one.
func TestObtainAfterALoss(t *testing.T) {
	for kind, lose := range map[string]func(*locktest.Server){
		"outage": func(s *locktest.Server) {
			s.Pause()
			time.AfterFunc(40*time.Second, s.Resume)
		},
		"break": func(s *locktest.Server) { s.Break("certmagic:"+name, "maintenance") },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := locktest.New(t)
				cache := certmagic.NewCache(certmagic.CacheOptions{
					GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return nil, nil },
					Logger:           zap.NewNop(),
				})
				defer cache.Stop()
				ca := &issuer{first: func() { lose(s) }}
				cfg := certmagic.New(cache, certmagic.Config{Storage: storage(t, s), Issuers: []certmagic.Issuer{ca}, Logger: zap.NewNop()})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if err := cfg.ObtainCertAsync(ctx, "example.com"); err != nil || ca.tries != 2 {
					t.Errorf("ObtainCertAsync returned %v after %d tries", err, ca.tries)
				}
				s.Free("certmagic:" + name)
			})
		})
	}
}

// issuer is a CA that is down at the first try.
type issuer struct {
	first func()
	tries int
}

func (i *issuer) Issue(context.Context, *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if i.tries++; i.tries == 1 {
		i.first()
		return nil, errors.New("the CA is down")
	}
	return &certmagic.IssuedCertificate{Certificate: []byte("certificate"), Metadata: map[string]string{}}, nil
}

func (i *issuer) IssuerKey() string { return "issuer" }

func TestRedisCannotBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		st := storage(t, s)
		s.Stop()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := st.Lock(short, name); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("Lock returned %v", err)
		}
		if ok, err := st.TryLock(t.Context(), name); ok || !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("TryLock returned %v, %v", ok, err)
		}
		time.AfterFunc(time.Hour, s.Start)
		if err := st.Lock(t.Context(), name); err != nil {
			t.Errorf("Lock did not wait for the end of the outage: %v", err)
		}
		if err := st.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
	})
}

// certmagic logs its storage, and what a storage without a name is made of may be secret.
func TestTheLogHasNoSecrets(t *testing.T) {
	type encrypted struct {
		certmagic.Storage
		key string
	}
	files := &certmagic.FileStorage{Path: "certs"}
	for wanted, storage := range map[string]certmagic.Storage{
		"Holdfast's locks over FileStorage:certs":                 files,
		"Holdfast's locks over *holdfastcertmagic_test.encrypted": &encrypted{files, "secret"},
	} {
		if got := holdfastcertmagic.NewStorage(nil, storage).String(); got != wanted {
			t.Errorf("%q, and not %q", got, wanted)
		}
	}
}

// What certmagic asks of a storage goes to the files.
func TestFilesStayWhereTheyWere(t *testing.T) {
	files := &certmagic.FileStorage{Path: t.TempDir()}
	st := holdfastcertmagic.NewStorage(nil, files)
	ctx := t.Context()
	if _, err := st.Load(ctx, "a/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of nothing returned %v", err)
	}
	if err := st.Store(ctx, "a/b", []byte("certificate")); err != nil {
		t.Fatal(err)
	}
	if got, err := files.Load(ctx, "a/b"); string(got) != "certificate" || err != nil {
		t.Errorf("the files have %q, %v", got, err)
	}
	if list, err := st.List(ctx, "a", true); !slices.Equal(list, []string{"a/b"}) || err != nil {
		t.Errorf("List returned %v, %v", list, err)
	}
	if info, err := st.Stat(ctx, "a/b"); info.Size != 11 || err != nil {
		t.Errorf("Stat returned %v, %v", info, err)
	}
	if err := st.Delete(ctx, "a"); err != nil || st.Exists(ctx, "a/b") {
		t.Errorf("Delete returned %v", err)
	}
}

// certmagic itself takes the lock: of two processes that clean one storage, the second one waits.
func TestCleanStorage(t *testing.T) {
	s := locktest.New(t)
	st := storage(t, s)
	giveBack := s.Take("certmagic:storage_clean", time.Minute)
	cleaned := make(chan error, 1)
	go func() { cleaned <- certmagic.CleanStorage(t.Context(), st, certmagic.CleanStorageOptions{}) }()
	s.Await("certmagic:storage_clean", func(i client.Info) bool { return i.Waiters == 1 })
	giveBack()
	if err := <-cleaned; err != nil {
		t.Error(err)
	}
	s.Free("certmagic:storage_clean")
}

// pausing is a storage whose Redis stands still as soon as certmagic works under its lock.
type pausing struct {
	certmagic.Storage
	s *locktest.Server
}

func (p pausing) List(context.Context, string, bool) ([]string, error) {
	p.s.Pause()
	return nil, nil
}

// A lock whose lease ended while Unlock waited for Redis is none that certmagic has to clean up.
func TestUnlockOutlastsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		st := storage(t, s)
		st.Storage = pausing{st.Storage, s}
		core, logs := observer.New(zap.ErrorLevel)
		opts := certmagic.CleanStorageOptions{Logger: zap.New(core), OCSPStaples: true}
		if err := certmagic.CleanStorage(t.Context(), st, opts); err != nil {
			t.Error(err)
		}
		s.Resume()
		s.Free("certmagic:storage_clean")
		certmagic.CleanUpOwnLocks(t.Context(), opts.Logger)
		for _, line := range logs.All() {
			t.Errorf("%s: %v", line.Message, line.ContextMap()["error"])
		}
	})
}

func storage(t *testing.T, s *locktest.Server) *holdfastcertmagic.Storage {
	c := s.Client(client.Config{MaxWait: 2 * time.Minute}) // of the client's other waits
	return holdfastcertmagic.NewStorage(c, &certmagic.FileStorage{Path: t.TempDir()})
}
