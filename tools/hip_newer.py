"""Holds the HIP kernels to the rules of the test `code objects` for architectures that the build's clang
does not know, with a newer clang: hip_newer.py BUILD ARCHITECTURES COMPILER...

The compiler need not have the tools of its version: what it writes is assembly. ARCHITECTURES are
separated by commas.
"""
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUNDLES = ['backends/hip/matrix.hipfb', 'backends/hip/portable.hipfb']


def command_of(build, bundle):
    """How the build compiles a bundle, but for the compiler, the architectures and the output."""
    lines = subprocess.run(['ninja', '-C', build, '-t', 'commands', bundle], check=True, capture_output=True,
                           text=True).stdout.strip().split('\n')
    words = iter(shlex.split(lines[-1])[1:])
    for word in words:
        if word in ('-MF', '-o'):
            next(words)
        elif word != '-MD' and not word.startswith('--offload-arch='):
            yield word


def main():
    build, archs, *compiler = sys.argv[1:]
    build = pathlib.Path(build).resolve()
    files = []
    for bundle in BUNDLES:
        for arch in archs.split(','):
            files.append(build / f'{bundle}.{re.sub("[^a-z0-9]", "_", arch)}.s')
            subprocess.run([*compiler, *command_of(build, bundle), f'--offload-arch={arch}', '-S', '-o', files[-1]],
                           check=True, cwd=build)
    sys.exit(subprocess.run([sys.executable, ROOT / 'tests/amd/check_code.py', '-', build / 'tests/amd/hip_rows',
                             *files]).returncode)


main()
