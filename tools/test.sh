#!/bin/sh
# The tests, from a bare machine: installs, builds with warnings as errors, runs the suite on every
# device here. OpenCL (PoCL) must be among them. More arguments go to `meson test`.
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh test

[ -d build/test ] || meson setup build/test -Dwerror=true -Dtests=enabled -Dcommand=enabled -Dopencl=enabled
ninja -C build/test
export LATTN_TEST_REQUIRE="${LATTN_TEST_REQUIRE:-reference,opencl}"
meson test -C build/test --print-errorlogs "$@" && status=0 || status=$?
python3 tools/count_tests.py build/test/meson-logs/testlog.json
exit "$status"
