#!/bin/sh
# Builds the Python package as a user would and runs its tests: the NumPy side, and the torch side
# where torch is (set PYTHON to an interpreter that has it).
set -eu
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python=${PYTHON:-python3}
"$python" -m venv --system-site-packages "$scratch/venv"
# Where $python is itself of a virtual environment, its packages too.
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$scratch/venv/bin/python" -c '
import sysconfig; print(sysconfig.get_path("purelib"))')/outer.pth"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check numpy pytest . \
    --config-settings=setup-args=-Dcuda=disabled --config-settings=setup-args=-Dhip=disabled
cp -r bindings/python/tests "$scratch/tests"
cd "$scratch"
POCL_CACHE_DIR="$scratch/pocl" venv/bin/python -m pytest -q -p no:cacheprovider tests
