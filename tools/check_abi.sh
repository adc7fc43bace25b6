#!/bin/sh
# Compares the shared library's ABI with that of the last release: the newest v* tag before HEAD, or
# check_abi.sh REVISION. Within one major version, functions may be added and structs may grow at
# their end if tools/abi.suppr says that they should; anything else fails.
set -eu
cd "$(dirname "$0")/.."

release=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$release" ]; then
    echo "no v* tag yet: there is no release to compare with"
    exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# build SOURCE NAME: the library with debug information, which is what abidiff reads.
build() {
    { meson setup "$scratch/$2" "$1" -Dbuildtype=debug -Dtests=disabled -Dcommand=disabled \
        -Dcuda=disabled -Dhip=disabled &&
        meson compile -C "$scratch/$2" lattn:shared_library; } >"$scratch/log" || {
        cat "$scratch/log" >&2
        exit 1
    }
}
mkdir "$scratch/source"
git archive "$release" | tar -x -C "$scratch/source"
build "$scratch/source" old
build . new

major() { sed -n 's/.*LATTN_VERSION_MAJOR \([0-9]*\).*/\1/p' "$1/include/lattn/lattn.h"; }
abidiff --no-added-syms --suppressions tools/abi.suppr \
    --headers-dir1 "$scratch/source/include" --headers-dir2 include \
    "$scratch/old/liblattn.so" "$scratch/new/liblattn.so" && changed=no || changed=yes
if [ "$changed" = no ]; then
    echo "the ABI is that of $release"
elif [ "$(major .)" != "$(major "$scratch/source")" ]; then
    echo "the ABI is not that of $release, and the major version says so"
else
    echo "the ABI is not that of $release: mend it, or raise LATTN_VERSION_MAJOR" >&2
    exit 1
fi
