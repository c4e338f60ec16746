// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is one in an archive or in the image. A name that ends with a slash is a directory.
type file struct {
	name    string
	mode    int64
	content []byte
}

// archives packs the command for each platform, with what its licence wants beside it.
func (r release) archives() error {
	for _, p := range platforms {
		name := "holdfast-" + r.version + "-" + p.String()
		files := []file{{name: name + "/", mode: 0o755}}
		for _, f := range []struct {
			from, name string
			mode       int64
		}{
			{"LICENSE", "LICENSE", 0o644},
			{"README.md", "README.md", 0o644},
			{filepath.Join(r.built, p.String(), p.command()), p.command(), 0o755},
		} {
			content, err := os.ReadFile(f.from)
			if err != nil {
				return err
			}
			files = append(files, file{name + "/" + f.name, f.mode, content})
		}
		pack, kind := tarball, ".tar.gz"
		if p.os == "windows" {
			pack, kind = zipped, ".zip"
		}
		content, err := pack(files, r.made)
		if err != nil {
			return err
		}
		if err := r.write(name+kind, content); err != nil {
			return err
		}
	}
	return nil
}

func tarball(files []file, made time.Time) ([]byte, error) {
	plain, err := tape(files, made)
	if err != nil {
		return nil, err
	}
	return gzipped(plain)
}

func gzipped(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// tape is a tar without anybody's name, and with one time.
func tape(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: made, Format: tar.FormatUSTAR,
			Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(files []file, made time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: made}
		header.SetMode(os.FileMode(f.mode))
		if strings.HasSuffix(f.name, "/") {
			header.SetMode(os.FileMode(f.mode) | os.ModeDir)
		}
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

const sums = "SHA256SUMS"

// checksums are of all results, as sha256sum --check reads them.
func (r release) checksums() error {
	entries, err := os.ReadDir(r.to)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == sums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.to, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	return r.write(sums, []byte(text.String()))
}
