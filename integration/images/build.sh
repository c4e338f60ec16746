#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Builds small images of Redis and Valkey for machines that can pull none, from
# the packages of Debian: holdfast-test/redis:7.0 (bookworm),
# holdfast-test/redis:8.0 and holdfast-test/valkey:8.1 (trixie).
# Images that exist are left alone; arguments name the ones wanted.
#
#   usage: build.sh [redis:7.0] [redis:8.0] [valkey:8.1]
#
# Needs root, docker, and debootstrap, which is installed with apt-get if it is
# missing. Nothing is installed in the images, so no package's script runs: the
# packages are unpacked, and the server and a shell, with the libraries that they
# are linked to, become the image (about 20 MB).
set -eu

say() { echo "images: $*"; }
die() {
	say "$*" >&2
	exit 1
}

need() {
	command -v docker >/dev/null || die "docker is not on PATH"
	docker version >/dev/null 2>&1 || die "the container engine does not answer"
	[ "$(id -u)" = 0 ] || die "debootstrap needs root"
	command -v debootstrap >/dev/null && command -v dpkg-deb >/dev/null && return
	command -v apt-get >/dev/null || die "debootstrap is missing, and there is no apt-get to install it with"
	say "installing debootstrap"
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends debootstrap debian-archive-keyring
}

# The Debian mirror that this system uses; empty (debootstrap's own default) if
# it uses none.
mirror() {
	command -v apt-get >/dev/null || return 0
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		sed -n '\|/debian/*$|{p;q;}'
}

# unpack SUITE PACKAGES: the packages and all they depend on, in $tmp/SUITE.
unpack() {
	[ -d "$tmp/$1" ] && return
	say "unpacking $2 of Debian $1"
	# shellcheck disable=SC2046 # no word at all if there is no mirror
	debootstrap --download-only --variant=minbase --include="$2" "$1" "$tmp/$1" $(mirror) >"$tmp/log" 2>&1 || {
		tail -n 20 "$tmp/log" >&2
		die "debootstrap $1 failed"
	}
	for deb in "$tmp/$1"/var/cache/apt/archives/*.deb; do
		dpkg-deb -x "$deb" "$tmp/$1"
	done
}

# build IMAGE SUITE PACKAGES
build() {
	name=holdfast-test/$1
	server=${1%:*}-server
	version=${1#*:}
	if docker image inspect --format '{{json .Config.Labels}}' "$name" 2>/dev/null | grep -q '"with a shell"'; then
		say "$name exists"
		return
	fi
	unpack "$2" "$3"
	chroot "$tmp/$2" "/usr/bin/$server" --version | grep -q "v=$version\." || die "$server of $2 is not $version"
	rootfs=$tmp/image-$1
	mkdir -p "$rootfs/tmp" "$rootfs/data"
	chmod 1777 "$rootfs/tmp" "$rootfs/data"
	for program in "$server" "${1%:*}-cli" sh base64 cat mkdir mv rm setsid; do
		file=$(chroot "$tmp/$2" /bin/sh -c "command -v $program")
		for part in "$file" $(chroot "$tmp/$2" ldd "$file" | grep -o '/[^ ]*'); do
			mkdir -p "$rootfs${part%/*}"
			cp -L "$tmp/$2$part" "$rootfs$part"
		done
	done
	tar -C "$rootfs" -c . | docker import --change "CMD [\"$server\"]" --change "WORKDIR /data" \
		--change "ENV PATH=/usr/bin:/bin" --change 'LABEL holdfast.image="with a shell"' - "$name" >/dev/null
	say "$name built"
}

need
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
for wanted in "${@:-all}"; do
	case $wanted in all | redis:7.0 | redis:8.0 | valkey:8.1) ;; *) die "unknown image $wanted" ;; esac
	case $wanted in all | redis:7.0) build redis:7.0 bookworm redis-server ;; esac
	case $wanted in all | redis:8.0) build redis:8.0 trixie redis-server,valkey-server ;; esac
	case $wanted in all | valkey:8.1) build valkey:8.1 trixie redis-server,valkey-server ;; esac
done
