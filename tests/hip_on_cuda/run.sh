#!/bin/bash
# The HIP backend on an NVIDIA GPU: its host code and its portable kernels, through a stand-in HIP
# runtime that forwards to CUDA's driver. No ROCm and no clang needed: gcc, nvcc, cmocka, jansson.
#
#     tests/hip_on_cuda/run.sh [FOLDER [build | test]]      (default build/hip_on_cuda, and both)
#
# Runs the suite of every device on it, large offsets, the golden files, the command, and an
# application with objects of its own: streams, errors, the current device, graphs. Exit status 1
# if anything failed.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
folder=${1:-$root/build/hip_on_cuda}
mkdir -p "$folder" && cd "$folder" || exit 2
folder=$PWD
for toolkit in /usr/local/cuda ${CUDA_HOME:-}; do
    PATH=$PATH:$toolkit/bin
done
tests=$root/tests
suite="prefill decode rules property thread large golden"

build() {
    local flags="-O2 -g -std=c11 -D_POSIX_C_SOURCE=200809L -I$root -I$root/include -fPIC"
    local command=$root/tools/lattn name harness device pids=()

    nvcc -fatbin -diag-suppress 177 -x cu -std=c++17 -O3 -arch="${NVIDIA_ARCH:-native}" -I"$root" \
        -o hip_on_cuda.fatbin "$root/backends/hip/kernels/portable.hip" &
    device=$!
    # The device code is the stand-in's; the bundles are never looked at.
    {
        printf 'const unsigned char lattn_hip_image_matrix[1] = {0};\n'
        printf 'const unsigned char lattn_hip_image_portable[1] = {0};\n'
        printf 'const char lattn_hip_archs[] = "gfx906";\n'
    } >build.c
    sed -e 's/@externs@/extern const struct lattn_backend lattn_backend_hip, lattn_backend_reference;/' \
        -e 's/@entries@/    \&lattn_backend_hip, \&lattn_backend_reference,/' \
        "$root/core/backends.c.in" >backends.c
    gcc $flags -fvisibility=hidden -shared -Wl,-soname,libamdhip64.so.6 -o libamdhip64.so.6 \
        "$tests/hip_on_cuda/forward.c" -ldl -lpthread || return
    gcc $flags -shared -o liblattn.so "$root"/core/*.c "$root"/backends/driver/*.c \
        "$root"/backends/hip/*.c build.c backends.c -ldl -lpthread -lm || return

    local link="-L$folder -llattn -lm -ldl -lpthread -Wl,-rpath,$folder"
    harness=$(sed -n "/static_library('harness'/,/include_directories/p" "$tests/meson.build" | grep -o "[a-z_]*\.c")
    for name in $suite; do
        local sources="$tests/${name}_test.c" libraries="-lcmocka"
        if [ "$name" = golden ]; then
            sources="$sources $command/safetensors.c $command/safetensors_write.c"
            libraries="-lcmocka -ljansson -I$command -DGOLDEN_FOLDER=\"$tests/golden\""
        fi
        gcc $flags -I"$tests" -o "${name}_test" $sources $(printf "$tests/%s " $harness) $libraries $link &
        pids+=($!)
    done
    gcc $flags -o interop_test "$tests/amd/interop_test.c" -lcmocka $link &
    pids+=($!)
    gcc $flags -I"$command" -o lattn "$command"/*.c -ljansson $link &
    pids+=($!)
    for name in "${pids[@]}" $device; do
        wait "$name" || return
    done
}

# The programs one beside the other: the device is shared, and the host's part of each is one thread.
check() {
    local pids=() name failed=0
    export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LATTN_TEST_BACKEND=hip LATTN_TEST_REQUIRE=hip
    ./lattn devices || failed=1
    ./interop_test || failed=1
    mkdir -p without_code && cp libamdhip64.so.6 without_code
    LD_LIBRARY_PATH=$folder/without_code:$LD_LIBRARY_PATH ./interop_test without_code || failed=1
    for name in $suite; do
        LATTN_TEST_SLOW=$([ "$name" = large ] && echo 1) "./${name}_test" >"$name.log" 2>&1 &
        pids+=($!)
    done
    for name in "${pids[@]}"; do
        wait "$name" || failed=1
    done
    for name in $suite; do
        cat "$name.log"
    done
    ./lattn verify --backend hip || failed=1
    ./lattn verify --backend hip "$tests"/golden/*.safetensors || failed=1
    [ $failed -eq 0 ] && echo "HIP on CUDA: all passed" || echo "HIP on CUDA: FAILED"
    return $failed
}

case ${2:-both} in
build) build ;;
test) check ;;
both) build && check ;;
*) exit 2 ;;
esac
