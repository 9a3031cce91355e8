#!/usr/bin/env bash
# build_python.sh VERSION: a Python that this Debian lacks, built into .cache/python-VERSION from
# the source in its next release, which apt verifies. Wants root; two minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version=$1
target=$PWD/.cache/python-$version

apt-get -q update
apt-get -q install -y --no-install-recommends build-essential libbz2-dev libffi-dev liblzma-dev \
    libsqlite3-dev libssl-dev xz-utils zlib1g-dev

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir -p lists/partial archives/partial
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb-src [signed-by=$keyring] http://deb.debian.org/debian trixie main" >sources.list
options=(-q -o "Dir::Etc::SourceList=$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$PWD/lists" -o "Dir::Cache=$PWD" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update
apt-get "${options[@]}" source --download-only "python$version"
tar xf "python$version"_*.orig.tar.xz
cd Python-*

build() {
    ./configure -q --prefix="$target" --disable-test-modules && make -s -j"$(nproc)" &&
        make -s install
}
build >build.log 2>&1 || { tail -n 50 build.log; exit 1; }
