#!/bin/sh
# run_engine.sh PROGRAM BACKEND: runs the engine; no device of that backend is a skip (77).
"$1" "$2" 2>engine-errors-"$2" && status=0 || status=$?
cat engine-errors-"$2" >&2
grep -q LATTN_ERROR_NO_DEVICE engine-errors-"$2" && status=77
rm -f engine-errors-"$2"
exit "$status"
