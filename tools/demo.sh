#!/bin/sh
# The main job, from a bare machine: installs, builds, then prefills and decodes real tensor files
# on the best device here and checks the results against the float64 reference.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh build

# Kernels take minutes to compile: only those that a device here could run.
options=-Dtests=disabled
[ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || options="$options -Dcuda=disabled"
[ -e /dev/kfd ] || options="$options -Dhip=disabled"
# shellcheck disable=SC2086
[ -d build/demo ] || meson setup build/demo $options >build-demo.log 2>&1 || {
    cat build-demo.log >&2
    exit 1
}
rm -f build-demo.log
ninja -C build/demo
lattn=build/demo/tools/lattn/lattn
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

say() { printf '\n$ %s\n' "$*"; "$@"; }
prompt=tests/golden/p_bf16_d128_hist.safetensors
tokens=tests/golden/d_bf16.safetensors
say $lattn devices
say $lattn prefill $prompt -o "$out/prefill.safetensors" --block-states
say $lattn decode $tokens -o "$out/decode.safetensors"
say $lattn verify $prompt $tokens
