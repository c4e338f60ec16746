// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The part of SPDX 2.3 that is used: https://spdx.github.io/spdx-spec/v2.3/
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string         `json:"SPDXID"`
		Name             string         `json:"name"`
		VersionInfo      string         `json:"versionInfo"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		CopyrightText    string         `json:"copyrightText"`
		PackageFileName  string         `json:"packageFileName,omitempty"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		ExternalRefs     []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	document   = "SPDXRef-DOCUMENT"
	noOneSays  = "NOASSERTION"
	modulePath = "github.com/holdfast-go/holdfast/loader/cmd/holdfast"
)

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// sbom lists what is in the commands, on whichever platform, as Go noted it in them, and the libraries.
func (r release) sbom() error {
	modules, err := r.modules()
	if err != nil {
		return err
	}
	doc := spdxDocument{SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: document, Name: "holdfast-" + r.version,
		DocumentNamespace: repository + "/sbom/" + r.version + "-" + r.revision,
		CreationInfo:      spdxCreation{r.made.Format(time.RFC3339), []string{"Organization: holdfast-go", "Tool: holdfast-dist"}}}
	command := goPackage(modulePath, r.version)
	doc.add(command, spdxRelationship{document, "DESCRIBES", command.SPDXID})
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		p := goPackage(path, modules[path])
		doc.add(p, spdxRelationship{command.SPDXID, "CONTAINS", p.SPDXID})
	}
	for _, name := range libraries {
		source, err := os.ReadFile(filepath.Join(r.to, name))
		if err != nil {
			return err
		}
		p := spdxPackage{SPDXID: "SPDXRef-" + name, Name: name, VersionInfo: versionIn(source), LicenseDeclared: "Apache-2.0",
			DownloadLocation: repository + "/releases/download/" + r.version + "/" + name, PackageFileName: name,
			Checksums: []spdxChecksum{{"SHA256", fmt.Sprintf("%x", sha256.Sum256(source))}}}
		doc.add(p, spdxRelationship{document, "DESCRIBES", p.SPDXID}, spdxRelationship{command.SPDXID, "CONTAINS", p.SPDXID})
	}
	content, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return r.write("holdfast-"+r.version+".spdx.json", append(content, '\n'))
}

func (d *spdxDocument) add(p spdxPackage, is ...spdxRelationship) {
	p.LicenseConcluded, p.CopyrightText = noOneSays, noOneSays
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, is...)
}

// modules are those in the commands with their versions, and Go's own library.
func (r release) modules() (map[string]string, error) {
	modules := map[string]string{}
	for _, p := range platforms {
		info, err := buildinfo.ReadFile(filepath.Join(r.built, p.String(), p.command()))
		if err != nil {
			return nil, err
		}
		if info.Main.Path != modulePath {
			return nil, fmt.Errorf("the command for %s is one of %s", p, info.Main.Path)
		}
		modules["stdlib"] = strings.TrimPrefix(info.GoVersion, "go")
		for _, dep := range info.Deps {
			switch {
			case dep.Replace == nil:
			case dep.Replace.Version == "" || dep.Replace.Version == "(devel)": // a directory of this repository
				dep.Version = r.version
			default:
				dep = dep.Replace
			}
			modules[dep.Path] = dep.Version
		}
	}
	return modules, nil
}

func goPackage(path, version string) spdxPackage {
	p := spdxPackage{SPDXID: "SPDXRef-" + strings.Trim(notInID.ReplaceAllString(path, "-"), "-"), Name: path,
		VersionInfo: version, DownloadLocation: noOneSays, LicenseDeclared: noOneSays,
		ExternalRefs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}}}
	if strings.HasPrefix(path, "github.com/holdfast-go/") {
		p.LicenseDeclared, p.DownloadLocation = "Apache-2.0", "git+"+repository
	}
	return p
}

var versionLine = regexp.MustCompile(`(?m)^local VERSION = '([^']*)'`)

// versionIn is that of a library's source.
func versionIn(source []byte) string {
	if found := versionLine.FindSubmatch(source); found != nil {
		return string(found[1])
	}
	return noOneSays
}
