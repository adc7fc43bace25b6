#!/bin/bash
# The HIP backend on an NVIDIA GPU: its host code and its portable kernels, through a stand-in HIP
# runtime that forwards to CUDA's driver. No ROCm and no clang needed: gcc, nvcc, cmocka.
#
#     tests/hip_on_cuda/run.sh [FOLDER]      (builds there; default build/hip_on_cuda)
#
# Runs the suite of every device on it, and a graph. Exit status 1 if anything failed.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
folder=${1:-$root/build/hip_on_cuda}
mkdir -p "$folder" && cd "$folder" || exit 2
for toolkit in /usr/local/cuda ${CUDA_HOME:-}; do
    PATH=$PATH:$toolkit/bin
done
flags="-O2 -g -std=c11 -D_POSIX_C_SOURCE=200809L -I$root -I$root/include -fPIC"

# The device code is the stand-in's; the bundles are never looked at.
{
    printf 'const unsigned char lattn_hip_image_matrix[1] = {0};\n'
    printf 'const unsigned char lattn_hip_image_portable[1] = {0};\n'
    printf 'const char lattn_hip_archs[] = "gfx906";\n'
} >build.c
sed -e 's/@externs@/extern const struct lattn_backend lattn_backend_hip, lattn_backend_reference;/' \
    -e 's/@entries@/    \&lattn_backend_hip, \&lattn_backend_reference,/' \
    "$root/core/backends.c.in" >backends.c

nvcc -fatbin -diag-suppress 177 -x cu -std=c++17 -O3 -arch=native -I"$root" -o hip_on_cuda.fatbin \
    "$root/backends/hip/kernels/portable.hip" &
gcc $flags -fvisibility=hidden -shared -Wl,-soname,libamdhip64.so.6 -o libamdhip64.so.6 \
    "$root/tests/hip_on_cuda/forward.c" -ldl -lpthread || exit 1
gcc $flags -shared -o liblattn.so "$root"/core/*.c "$root"/backends/driver/*.c \
    "$root"/backends/hip/*.c build.c backends.c -ldl -lpthread -lm || exit 1
tests=$root/tests
harness=$(sed -n "/static_library('harness'/,/include_directories/p" "$tests/meson.build" | grep -o "[a-z_]*\.c")
for name in prefill decode property thread; do
    gcc $flags -I"$tests" -o ${name}_test "$tests/${name}_test.c" $(printf "$tests/%s " $harness) \
        -L. -llattn -lcmocka -lm -lpthread -Wl,-rpath,"$folder" || exit 1
done
gcc $flags -o graph_test "$tests/hip_on_cuda/graph_test.c" -L. -llattn -ldl -Wl,-rpath,"$folder" || exit 1
wait $! || exit 1

export LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LATTN_TEST_BACKEND=hip LATTN_TEST_REQUIRE=hip
failed=0
for name in prefill decode property thread; do
    ./${name}_test || failed=1
done
./graph_test || failed=1
[ $failed -eq 0 ] && echo "HIP on CUDA: all passed" || echo "HIP on CUDA: FAILED"
exit $failed
