# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the other scripts: goes to the top of the source tree, and has functions to install what is missing and to
# set up the build.
# shellcheck shell=sh disable=SC2034
cd "$(dirname "$0")/.." || exit 1

tool=$PWD/build/tools/npuquant

# Whether commands are there.
have() {
    for command in "$@"; do
        command -v "$command" >/dev/null 2>&1 || return 1
    done
}

has_compiler() {
    have cc || have gcc || have clang
}

# install_packages PACKAGES: those of Debian and Ubuntu; elsewhere says what the packages are called and goes on, for
# the tools may be there.
install_packages() {
    if ! have apt-get; then
        echo "This script installs packages on Debian and Ubuntu only. If something is missing below:"
        echo "  Fedora:  dnf install gcc meson ninja-build libcmocka-devel python3-numpy pkgconf"
        echo "  Arch:    pacman -S gcc meson ninja cmocka python-numpy pkgconf"
        echo "  Alpine:  apk add gcc musl-dev meson ninja cmocka-dev py3-numpy pkgconf"
        echo "  macOS:   brew install meson ninja cmocka numpy pkgconf"
        return 0
    fi
    as_root=
    if [ "$(id -u)" != 0 ]; then
        as_root=sudo
    fi
    echo "installing $*"
    if ! DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "$@" >/dev/null 2>&1; then
        $as_root apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq "$@" >/dev/null
    fi
}

# configure TESTS: sets up ./build, with the tests or without; what is set up already keeps its options.
configure() {
    if [ -f build/build.ninja ]; then
        if [ "$1" = true ]; then
            meson configure build -Dtests=true
        fi
    else
        meson setup build -Dtests="$1"
    fi
}
