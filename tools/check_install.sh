#!/bin/sh
# Installs into a prefix, moves the prefix, and builds and runs the example engine against it through
# pkg-config and CMake, shared and static.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

meson setup "$scratch/build" --prefix="$scratch/first" --libdir=lib -Dtests=disabled \
    -Dcuda=disabled -Dhip=disabled >/dev/null
meson install -C "$scratch/build" --quiet >/dev/null
mv "$scratch/first" "$scratch/prefix"

export PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig" LD_LIBRARY_PATH="$scratch/prefix/lib"
for static in 0 1; do
    cp -r examples/engine "$scratch/make$static"
    make -s -C "$scratch/make$static" STATIC=$static
    echo "pkg-config, $([ $static = 1 ] && echo static || echo shared):"
    "$scratch/make$static/engine" reference
done
if command -v cmake >/dev/null; then
    for static in OFF ON; do
        cmake -S examples/engine -B "$scratch/cmake$static" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
            -Dlattn_USE_STATIC_LIBS=$static >/dev/null
        cmake --build "$scratch/cmake$static" >/dev/null
        echo "CMake, $([ $static = ON ] && echo static || echo shared):"
        "$scratch/cmake$static/engine" reference
    done
fi
