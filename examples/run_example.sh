#!/bin/sh
# run_example.sh PROGRAM [ARGUMENT]: runs an example; no driver or no device for it is a skip (77).
if ldd "$1" 2>/dev/null | grep 'not found'; then
    exit 77
fi
errors=$(mktemp)
"$@" 2>"$errors" && status=0 || status=$?
cat "$errors" >&2
grep -q LATTN_ERROR_NO_DEVICE "$errors" && status=77
rm -f "$errors"
exit "$status"
