"""Two copies of the library in one program: check_prefix.py SOURCE SCRATCH

Builds and installs the library twice, with different prefixes, and links both, static and then
shared, into one program that uses both. Each copy passes check_symbols.py.
"""
import os
import pathlib
import shutil
import subprocess
import sys

source, scratch = (pathlib.Path(path).absolute() for path in sys.argv[1:3])
here = pathlib.Path(__file__).parent.absolute()
meson = shutil.which('meson')
if meson is None:
    print('no meson on the PATH: skipped')
    sys.exit(77)
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
cc = os.environ.get('CC', 'cc').split()
plain = {k: v for k, v in os.environ.items() if k not in ('DESTDIR', 'CFLAGS', 'LDFLAGS')}


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=plain | more)
    if result.returncode:
        sys.exit(f'{" ".join(map(str, command))}\n{result.stdout}{result.stderr}')
    return result.stdout


halves = {'first': 'one_', 'second': 'other_'}
for half, prefix in halves.items():
    build, root = scratch / f'build-{half}', scratch / half
    run(meson, 'setup', build, source, f'--prefix={root}', '--libdir=lib', f'-Dsymbol_prefix={prefix}',
        '-Doptimization=0', '-Dcuda=disabled', '-Dhip=disabled', '-Dtests=disabled', '-Dcommand=disabled')
    run(meson, 'install', '-C', build)
    print(run(sys.executable, here / 'check_symbols.py', root / f'lib/lib{prefix}lattn.so',
              root / f'lib/lib{prefix}lattn.a', prefix), end='')
    run(*cc, '-std=c11', f'-DHALF={half}', f'-I{root}/include', '-c', here / 'prefix_half.c',
        '-o', scratch / f'{half}.o')

objects = [here / 'prefix_main.c', scratch / 'first.o', scratch / 'second.o']
for kind in ('a', 'so'):
    libraries = [scratch / half / f'lib/lib{prefix}lattn.{kind}' for half, prefix in halves.items()]
    run(*cc, *objects, *libraries, '-ldl', '-lpthread', '-lm', '-o', scratch / kind)
    print(f'{kind}:', run(scratch / kind, LD_LIBRARY_PATH=f'{scratch}/first/lib:{scratch}/second/lib'), end='')
