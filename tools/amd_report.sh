#!/bin/bash
# For an owner of an AMD GPU: builds the library with its HIP kernels, runs the suite, verify and bench
# on every HIP device, and leaves one file to send back. No AMD GPU of the authors' has run any of it.
#
#     tools/amd_report.sh [-q] [FOLDER]        (default build/amd)
#
# -q: only the short suite and small sizes, to see that the script itself works.
# Needs a HIP runtime (ROCm 5 or later: libamdhip64), clang 19 or newer or ROCm's own, Meson, ninja,
# gcc, and libcmocka-dev and libjansson-dev. Takes some minutes. Changes nothing outside FOLDER.
# Exit status 1 if anything failed.
set -u
cd "$(dirname "$0")/.." || exit 2
quick=
while getopts q option; do
    case $option in
    q) quick=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
folder=${1:-build/amd}
mkdir -p "$folder"
report=$folder/amd_report.txt
failed=0

# step TITLE SECONDS COMMAND...: into the report, with how it ended.
step() {
    local title=$1 limit=$2 status
    shift 2
    echo "... $title" >&2
    printf '\n==== %s\n$ %s\n' "$title" "$*" >>"$report"
    timeout "$limit" "$@" >>"$report" 2>&1
    status=$?
    if [ $status -eq 77 ]; then
        echo "$title: left out" | tee -a "$report" >&2
    elif [ $status -ne 0 ]; then
        failed=1
        echo "$title: FAILED ($status)" | tee -a "$report" >&2
    fi
    return $status
}

# The suite, with only failures and totals.
suite() {
    LATTN_TEST_BACKEND=hip LATTN_TEST_REQUIRE=hip "$folder/tests/$1_test" >"$folder/$1.log" 2>&1
    local status=$?
    grep -v '^\[ RUN \|^\[       OK ' "$folder/$1.log"
    return $status
}

# The numbers of the devices that there is code for.
ordinals() {
    "$lattn" devices | awk '$2 == "hip" && / yes / { print $3 }'
}

bench() {
    local status=0 shape dtype device
    local prefill="1,64,4096,128,128 1,64,65536,128,128 8,64,2048,128,128 16,16,4096,64,64"
    local decode="1,64,1,128,128 64,64,1,128,128 256,64,1,128,128"
    [ -n "$quick" ] && prefill=1,2,300,64,64 decode=2,2,1,64,64
    for device in $(ordinals); do
        for dtype in bf16 f16 f32; do
            for shape in $prefill; do
                "$lattn" bench --backend hip --device "$device" --op prefill --shape "$shape" --dtype $dtype || status=1
            done
            for shape in $decode; do
                "$lattn" bench --backend hip --device "$device" --op decode --shape "$shape" --dtype $dtype || status=1
            done
        done
    done
    return $status
}

export folder quick
[ -n "$quick" ] && export LATTN_TEST_QUICK=1
export lattn=$folder/tools/lattn/lattn
export -f suite ordinals bench

{
    echo "lattn on an AMD GPU"
    echo "date    $(date -u +%Y-%m-%dT%H:%MZ)"
    echo "commit  $(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "kernel  $(uname -sr)"
    cat /opt/rocm/.info/version 2>/dev/null | sed 's/^/rocm    /'
} >"$report"

# Those of this machine's GPUs, from the numbers that Linux gives: 110001 is gfx1101, 90010 gfx90a.
archs() {
    cat /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null |
        awk '$1 == "gfx_target_version" && $2 { printf "gfx%d%x%x\n", $2 / 10000, $2 / 100 % 100, $2 % 100 }' |
        sort -u | paste -sd, -
}

build() {
    local archs
    archs=$(archs)
    [ -d "$folder/meson-info" ] || meson setup "$folder" -Dhip=enabled -Dtests=enabled \
        -Dcommand=enabled -Dcuda=disabled -Dopencl=disabled ${archs:+"-Damd_archs=$archs"} || return
    ninja -C "$folder"
}
export -f archs build

if step "build" 1800 bash -c build; then
    step "devices" 60 "$lattn" devices
    step "verify" 900 "$lattn" verify --backend hip
    step "verify, golden files" 900 bash -c '"$lattn" verify tests/golden/*.safetensors --backend hip'
    step "streams, errors and graphs of an application" 60 "$folder/tests/amd/interop_test"
    for name in prefill decode rules property thread; do
        step "suite: $name" 900 bash -c "suite $name"
    done
    step "bench" 900 bash -c bench
fi

printf '\n%s\n' "$([ $failed -eq 0 ] && echo 'all passed' || echo 'FAILED')" >>"$report"
echo "Please send $report with an issue at the project's page." >&2
exit $failed
