#!/bin/sh
# Installs what building needs: setup.sh build | test | ci   (each includes the one before it)
# Does nothing where it is all there; says what is missing where there is no apt.
set -eu

build="gcc libc6-dev meson ninja-build pkg-config python3 libjansson-dev ocl-icd-libopencl1 pocl-opencl-icd"
test="libcmocka-dev ocl-icd-opencl-dev opencl-headers g++ binutils"
ci="clang clang-format libclang-rt-dev oclgrind mesa-opencl-icd clang-19 llvm-19 lld-19 libopenblas-dev cmake make python3-venv python3-dev abigail-tools git"

case "${1:-build}" in
build) packages="$build" ;;
test) packages="$build $test" ;;
ci) packages="$build $test $ci" ;;
*) echo "usage: setup.sh build|test|ci" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
    missing=
    for tool in cc meson ninja pkg-config python3; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    pkg-config --exists jansson 2>/dev/null || missing="$missing jansson"
    [ "${1:-build}" = build ] || pkg-config --exists cmocka 2>/dev/null || missing="$missing cmocka"
    [ -z "$missing" ] && exit 0
    echo "There is no apt here. Install with this system's own packages:$missing" >&2
    echo "(and an OpenCL driver, such as PoCL, to run on one; Debian's names: $packages)" >&2
    exit 1
fi

absent=
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        absent="$absent $package"
done
[ -z "$absent" ] && exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
    root=$(command -v sudo) || {
        echo "Needs root to install:$absent" >&2
        exit 1
    }
fi
echo "Installing:$absent"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# shellcheck disable=SC2086
if ! { $root apt-get update && $root apt-get install -y --no-install-recommends $absent; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    exit 1
fi
rm -f "$log"
