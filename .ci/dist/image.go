// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// authorities are the certificates that the image trusts: those of the machine that makes it.
const authorities = "/etc/ssl/certs/ca-certificates.crt"

// The media types of https://github.com/opencontainers/image-spec.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// layout is an OCI image layout that is being made: files by their digests.
type layout struct{ files []file }

// add keeps a blob, and returns what leads to it.
func (l *layout) add(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.files = append(l.files, file{"blobs/sha256/" + sum, 0o644, content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) addJSON(mediaType string, object any) (descriptor, error) {
	content, err := json.Marshal(object)
	return l.add(mediaType, content), err
}

// labels say what the image is: https://github.com/opencontainers/image-spec/blob/main/annotations.md
func (r release) labels() map[string]string {
	const label = "org.opencontainers.image."
	return map[string]string{
		label + "title":         "holdfast",
		label + "description":   "The holdfast command: loads the Holdfast library, shows and breaks locks",
		label + "url":           repository,
		label + "source":        repository,
		label + "documentation": repository + "/blob/" + r.version + "/docs/command.md",
		label + "version":       strings.TrimPrefix(r.version, "v"),
		label + "revision":      r.revision,
		label + "created":       r.made.Format(time.RFC3339),
		label + "licenses":      "Apache-2.0",
	}
}

// image makes an OCI layout of one image for Linux on two architectures: the command, the
// authorities that it trusts, and nothing else. It runs as nobody.
func (r release) image() error {
	l := &layout{}
	var manifests []descriptor
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		manifest, err := r.imageFor(l, p)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	index, err := l.addJSON(typeIndex, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests,
		"annotations": r.labels()})
	if err != nil {
		return err
	}
	index.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          "holdfast:" + r.version, // what docker load calls it
	}
	top, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []descriptor{index}})
	if err != nil {
		return err
	}
	all := append([]file{{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", 0o644, top},
		{"blobs/", 0o755, nil}, {"blobs/sha256/", 0o755, nil}}, l.files...)
	content, err := tape(all, r.made)
	if err != nil {
		return err
	}
	return r.write("holdfast-"+r.version+"-image.tar", content)
}

// imageFor adds the image of one platform, and returns its manifest's descriptor.
func (r release) imageFor(l *layout, p platform) (descriptor, error) {
	command, err := os.ReadFile(filepath.Join(r.built, p.String(), p.command()))
	if err != nil {
		return descriptor{}, err
	}
	files := []file{{"holdfast", 0o755, command}}
	if certificates, err := os.ReadFile(authorities); err == nil {
		files = append(files, file{"etc/", 0o755, nil}, file{"etc/ssl/", 0o755, nil}, file{"etc/ssl/certs/", 0o755, nil},
			file{strings.TrimPrefix(authorities, "/"), 0o644, certificates})
	} else {
		fmt.Fprintln(os.Stderr, "dist: the image trusts no authority of its own:", err)
	}
	plain, err := tape(files, r.made)
	if err != nil {
		return descriptor{}, err
	}
	packed, err := gzipped(plain)
	if err != nil {
		return descriptor{}, err
	}
	layer := l.add(typeLayer, packed)
	config, err := l.addJSON(typeConfig, map[string]any{
		"created": r.made.Format(time.RFC3339), "architecture": p.arch, "os": p.os,
		"config": map[string]any{"User": "65534:65534", "Entrypoint": []string{"/holdfast"}, "Labels": r.labels()},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(plain))}},
	})
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := l.addJSON(typeManifest, map[string]any{"schemaVersion": 2, "mediaType": typeManifest,
		"config": config, "layers": []descriptor{layer}, "annotations": r.labels()})
	manifest.Platform = &imagePlatform{p.arch, p.os}
	return manifest, err
}
