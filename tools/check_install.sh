#!/bin/sh
# Makes the release tarball, builds and installs from it without a network, moves the prefix, and
# builds and runs the example engine against it through pkg-config and CMake, shared and static; then
# once more with the library as a Meson subproject.
# Where there are changes since the last commit, which a tarball would miss, the tree itself is built.
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

options="-Dtests=disabled -Dcuda=disabled -Dhip=disabled"
source=.
if git diff --quiet HEAD 2>/dev/null; then
    # shellcheck disable=SC2086
    meson setup "$scratch/dist" $options >/dev/null
    meson dist -C "$scratch/dist" --no-tests --formats gztar >/dev/null
    tar -xzf "$scratch"/dist/meson-dist/*.tar.gz -C "$scratch"
    source=$(echo "$scratch"/lattn-*)
    echo "from the tarball $(basename "$source").tar.gz"
fi
offline=
unshare --map-root-user --net true 2>/dev/null && offline="unshare --map-root-user --net"
# shellcheck disable=SC2086
$offline meson setup "$scratch/build" "$source" --prefix="$scratch/first" --libdir=lib $options >/dev/null
$offline meson install -C "$scratch/build" --quiet >/dev/null
mv "$scratch/first" "$scratch/prefix"
echo "the command, from its prefix:"
"$scratch/prefix/bin/lattn" devices

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

mkdir -p "$scratch/project/subprojects"
cp examples/engine/*.[ch] "$scratch/project"
ln -s "$(realpath "$source")" "$scratch/project/subprojects/lattn"
cat >"$scratch/project/meson.build" <<'END'
project('mine', 'c', default_options: ['c_std=c11'])
lattn = dependency('lattn', fallback: 'lattn', default_options: ['tests=disabled', 'command=disabled'])
executable('engine', 'engine.c', 'main.c', 'model.c', c_args: '-D_POSIX_C_SOURCE=200809L',
  dependencies: [lattn, meson.get_compiler('c').find_library('m')])
END
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
meson setup "$scratch/project/build" "$scratch/project" --wrap-mode=forcefallback \
    -Dlattn:cuda=disabled -Dlattn:hip=disabled >/dev/null
ninja -C "$scratch/project/build" --quiet engine
echo "Meson subproject:"
"$scratch/project/build/engine" reference
