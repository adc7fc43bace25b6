#!/bin/sh
# Builds the Python package as a user would and runs its tests: the NumPy side, and the torch side
# where torch is (set PYTHON to an interpreter that has it).
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv --system-site-packages "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check numpy pytest . \
    --config-settings=setup-args=-Dcuda=disabled --config-settings=setup-args=-Dhip=disabled
cp -r bindings/python/tests "$scratch/tests"
cd "$scratch"
POCL_CACHE_DIR="$scratch/pocl" venv/bin/python -m pytest -q -p no:cacheprovider tests
