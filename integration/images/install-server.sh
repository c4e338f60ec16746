#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Installs redis-server (or valkey-server) with the system's package manager,
# for machines that have neither a server nor a container engine. It prints the
# commands that it runs. Needs root, sudo without a password, or Homebrew.
set -eu

run() {
	echo "install-server: $*"
	"$@"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		run "$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		run sudo -n "$@"
	else
		echo "install-server: '$*' needs root; run it yourself, or install redis-server 7.0 or later in another way" >&2
		exit 1
	fi
}

if command -v brew >/dev/null; then
	run brew install redis
elif command -v apt-get >/dev/null; then
	as_root apt-get update -q
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends redis-server
elif command -v dnf >/dev/null; then
	as_root dnf install -y valkey || as_root dnf install -y redis
elif command -v apk >/dev/null; then
	as_root apk add --no-cache valkey || as_root apk add --no-cache redis
elif command -v pacman >/dev/null; then
	as_root pacman -Sy --noconfirm valkey
else
	echo "install-server: no apt-get, dnf, apk, pacman or brew here; install redis-server 7.0 or later" >&2
	exit 1
fi
