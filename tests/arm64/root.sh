#!/bin/sh
# An arm64 root with Python and what the package needs, for tests/arm64: one minute, 400 MB, no privileges.
#
#     tests/arm64/root.sh [FOLDER]        # default: .cache/arm64
#     .venv/bin/python -m pytest -m arm64
#
# Needs apt and dpkg-deb; to use it, qemu-aarch64 (Debian and Ubuntu: qemu-user).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
root=${1:-$here/.cache/arm64}
debian=bookworm
python=3.11

mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/apt/etc"
root=$(cd "$root" && pwd)
: > "$root/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $debian main" \
    > "$root/apt/sources.list"
apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
        -o Dir::State="$root/apt" -o Dir::State::status="$root/apt/status" -o Dir::State::lists="$root/apt/lists" \
        -o Dir::Cache="$root/apt" -o Dir::Cache::archives="$root/apt/archives" \
        -o Dir::Etc::sourcelist="$root/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true "$@"
}
apt update
apt install --download-only -y "libpython$python-stdlib" "python$python-minimal" libstdc++6
for package in "$root"/apt/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
done

"$here/.venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --target "$root/site" --upgrade \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    --python-version "$python" --implementation cp --only-binary=:all: --require-hashes -r "$here/local/requirements.txt"
# onnxruntime asks the kernel's files which processor this is, and crashes on an x86 one's answers.
# qemu-user looks in the root first: there it finds a Neoverse N1, as in Graviton2, with one core.
cp -r "$here/tests/arm64/graviton2/." "$root"
echo "$root is ready"
