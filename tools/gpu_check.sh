#!/bin/bash
# Everything that needs an NVIDIA GPU, on a bare machine: builds with all backends, runs the suite on
# CUDA and on every OpenCL device, CUDA graphs, memory beyond 2^31 elements, compute-sanitizer over
# the short suite, the golden files, the examples, the Python package on CUDA tensors, the host cost
# of a call, and the benchmark. Prints one summary; exit status 1 if anything in it failed.
#
#     tools/gpu_check.sh [-o FOLDER] [-p DEBS] [-c COMMIT] [-t TESTS] [-- MESON OPTIONS]
#
# Needs nvcc, Meson, ninja and gcc. Where cmocka, jansson or pkg-config are not installed, DEBS is a
# folder of Debian packages that have them (libcmocka0 libcmocka-dev libjansson4 libjansson-dev
# pkgconf pkgconf-bin libpkgconf3); they are unpacked beside the build, nothing is installed.
# The Python steps need Python's headers, torch and pytest, and are left out without them. TESTS is a
# folder with other projects' test_*.py, for tools/public_tests.py. MESON OPTIONS are for the build:
# -Dnvidia_archs=... spares the architectures that the machine has not.
# summary.txt, log.txt and each step's log go to FOLDER (build/gpu/check); COMMIT names the source
# where git cannot.
set -u
cd "$(dirname "$0")/.." || exit 2

folder=build/gpu/check debs= public= commit=$(git describe --always --dirty 2>/dev/null)
while getopts o:p:c:t: option; do
    case $option in
    o) folder=$OPTARG ;;
    p) debs=$OPTARG ;;
    c) commit=$OPTARG ;;
    t) public=$(realpath "$OPTARG") ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
export options="$*"
mkdir -p "$folder/parts" build
folder=$(realpath "$folder")
summary=$folder/summary.txt
failed=0

# step NAME SECONDS COMMAND...: runs it with a time limit, its output in a log of its own.
step() {
    local name=$1 limit=$2 log status word start=$SECONDS
    shift 2
    log=$folder/${name//[^a-z0-9]/_}.log
    timeout "$limit" "$@" >"$log" 2>&1
    status=$?
    word=passed
    [ $status -eq 0 ] || word="FAILED ($status)"
    [ $status -eq 0 ] || failed=1
    [ $status -eq 124 ] && word="FAILED (over $limit s)"
    printf '%-40s %-22s %4d s   %s\n' "$name" "$word" $((SECONDS - start)) "$(count "$log")" >>"$summary"
    return $status
}

# What a log says of its tests, in all of its groups: passed, skipped, failed.
count() {
    awk '/^\[ +OK \]/ { ok++ } /^\[  SKIPPED \] / && !/test\(s\)/ { skipped++ }
         /^\[  FAILED  \] / && !/test\(s\)/ { bad++ }
         /^(Ok|Fail|Skipped): / { sub(/ +/, " "); meson = meson $0 " " }
         /^[0-9]+ (passed|failed).* in [0-9.]+s/ || / comparisons, the largest error / {
             sub(/ in [0-9.]+s.*/, ""); python = python (python ? "; " : "") $0 }
         /ERROR SUMMARY:|RACECHECK SUMMARY:/ { sub(/^=+ /, ""); last = last $0 "; " }
         END { if (ok) printf "%d tests ok, %d skipped, %d failed", ok, skipped / 2, bad / 2
               printf "%s%s", meson, python
               if (last) printf "; %s", substr(last, 1, length(last) - 2) }' "$1"
}

# ---- what the machine lacks ---------------------------------------------------------------------

if [ -n "$debs" ]; then
    prefix=$PWD/build/gpu-debs
    for package in "$debs"/*.deb; do
        dpkg -x "$package" "$prefix" || exit 2
    done
    library=$prefix/usr/lib/x86_64-linux-gnu
    export CPATH=$prefix/usr/include LIBRARY_PATH=$library PATH=$PATH:$prefix/usr/bin
    export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export PKG_CONFIG_PATH=$library/pkgconfig
fi
for toolkit in /usr/local/cuda ${CUDA_HOME:-}; do
    PATH=$PATH:$toolkit/bin
done

# NVIDIA's OpenCL driver is often there without its entry in the list of drivers.
if [ -z "${OCL_ICD_VENDORS:-}" ] && ! grep -qs nvidia /etc/OpenCL/vendors/*.icd; then
    driver=$(ldconfig -p | awk '/libnvidia-opencl.so.1/ { print $NF; exit }')
    [ -n "$driver" ] || driver=$(find /usr/local/nvidia /usr/lib -name libnvidia-opencl.so.1 2>/dev/null | head -n 1)
    if [ -n "$driver" ]; then
        export OCL_ICD_VENDORS=$PWD/build/gpu-vendors/
        mkdir -p "$OCL_ICD_VENDORS"
        cp /etc/OpenCL/vendors/*.icd "$OCL_ICD_VENDORS" 2>/dev/null
        echo "$driver" >"$OCL_ICD_VENDORS/nvidia.icd"
    fi
fi

# ---- the steps ----------------------------------------------------------------------------------

{
    echo "lattn on an NVIDIA GPU"
    echo "date    $(date -u +%Y-%m-%dT%H:%MZ)"
    echo "commit  ${commit:-unknown}"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sed 's/^/device  /'
    nvcc --version | sed -n 's/^Cuda compilation tools, /nvcc    /p'
    echo
} >"$summary"

tests=build/gpu/tests
lattn=build/gpu/tools/lattn/lattn
export LATTN_TEST_REQUIRE=cuda,opencl

build() {
    [ -d build/gpu/meson-info ] || meson setup build/gpu -Dtests=enabled -Dcommand=enabled -Dcuda=enabled \
        -Dopencl=enabled -Dpython=auto $options || return
    ninja -C build/gpu
}

suite() { # BACKEND
    local test pid pids=() status=0
    for test in $(device_tests); do
        LATTN_TEST_BACKEND=$1 $tests/${test}_test >"$folder/parts/$1-$test" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || status=1
    done
    cat "$folder/parts/$1"-*
    return $status
}

# The programs of the device suite that are not steps of their own below.
device_tests() {
    meson introspect --tests build/gpu | python3 -c '
import json, os, sys
for test in json.load(sys.stdin):
    program = os.path.basename(test["cmd"][0])
    if test["suite"] == ["lattn:device"] and test["name"] not in ("large", "cuda graph"):
        print(program.removesuffix("_test"))'
}

# The short suite, and every pair of head sizes, so that all kernels are met.
sanitize() { # TOOL TEST
    local status=0
    export LATTN_TEST_BACKEND=cuda
    set -- compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 "$tests/$2_test"
    LATTN_TEST_QUICK=1 "$@" || status=1
    "$@" 'd *' || status=1
    return $status
}

large() { # BACKEND
    LATTN_TEST_BACKEND=$1 LATTN_TEST_SLOW=1 $tests/large_test
}

# Python with the package as it would be installed.
packaged() {
    [ -d build/gpu/python ] ||
        DESTDIR=$PWD/build/gpu/python meson install -C build/gpu --no-rebuild --tags python-runtime || return
    PYTHONPATH=$(dirname "$(dirname "$(find "$PWD/build/gpu/python" -name '_lattn.*')")") python3 "$@"
}

bench() {
    $lattn bench --backend cuda || return
    $lattn bench --backend cuda --op prefill --shape 1,64,64,128,128 || return
    $lattn bench --backend cuda --op decode --shape 64,64,4,128,128 || return
    local type
    for type in f16 f32 "f32 --precision tf32"; do
        $lattn bench --backend cuda --op prefill --dtype $type || return
    done
}

export -f bench build packaged suite device_tests sanitize large
export tests lattn folder public

step "build" 300 bash -c build
if [ $? -eq 0 ]; then
    step "devices" 60 $lattn devices
    # Side by side, the long ones first: the machine has many cores, and the device is shared.
    step "suite, opencl" 240 bash -c "suite opencl" &
    step "other tests" 240 meson test -C build/gpu --no-rebuild --no-suite device --no-suite rows \
        --no-suite examples --print-errorlogs --timeout-multiplier 5 &
    step "suite, cuda" 240 bash -c "suite cuda" &
    for tool in memcheck racecheck initcheck; do
        step "$tool, prefill" 150 bash -c "sanitize $tool prefill" &
        step "$tool, decode" 150 bash -c "sanitize $tool decode" &
    done
    step "hip on cuda" 200 tests/hip_on_cuda/run.sh build/hip_on_cuda &
    python=$(compgen -G 'build/gpu/bindings/python/_lattn.*.so')
    if [ -n "$python" ] && python3 -c 'import torch, pytest'; then
        step "python on cuda" 200 bash -c \
            'packaged -m pytest -q -p no:cacheprovider -k "not cpu" bindings/python/tests' &
    else
        python=
        echo "python: left out, no torch, pytest or headers" >>"$summary"
    fi
    wait
    step "graphs" 60 $tests/cuda/graph_test
    step "large offsets, cuda" 120 bash -c "large cuda"
    step "large offsets, opencl" 120 bash -c "large opencl"
    step "verify, golden files" 120 $lattn verify tests/golden/*.safetensors
    step "examples" 60 meson test -C build/gpu --no-rebuild --suite examples --print-errorlogs
    if [ -n "$python" ]; then
        [ -z "$public" ] || step "python, public tests" 120 bash -c \
            'packaged tools/public_tests.py --device cuda $(find "$public" -name "test_*.py")'
        step "python overhead" 60 bash -c "packaged bench/python_overhead.py cuda"
    fi
    step "host cost" 60 build/gpu/bench/host_cost cuda
    step "bench" 90 bash -c bench
    for name in devices host_cost bench python_overhead; do
        [ -e "$folder/$name.log" ] && { echo; cat "$folder/$name.log"; } >>"$summary"
    done
fi

grep -q FAILED "$summary" && failed=1
{
    echo
    [ $failed -eq 0 ] && echo "all passed, $SECONDS s" || echo "FAILED, $SECONDS s"
} >>"$summary"
# What the steps printed, but for tests that passed, a quiet build, and paths and settings of this
# machine.
for log in "$folder"/*.log; do
    echo "==== $(basename "$log" .log)"
    if [ "$log" = "$folder/build.log" ]; then
        grep -Ei 'warning|error|failed' "$log"
    else
        grep -Ev '^\[ +(OK|RUN) +\]|^>>>' "$log"
    fi | sed "s|$PWD|.|g"
done >"$folder/log.txt"
cat "$summary"
exit $failed
