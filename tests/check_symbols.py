"""What the built library shows and asks for: check_symbols.py LIBRARY.so LIBRARY.a [PREFIX]

- it exports exactly the functions that the public header declares, and those are the ones listed
  in exported.txt: a removed one breaks programs, and asks for another major version
- in the archive too, every global name starts with lattn_, or with PREFIX lattn_
- it needs libc, libm, libdl, libpthread and no other library: drivers are opened at run time
- it calls nothing that prints, ends the process or installs handlers
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LIBRARIES = {'libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'ld-linux-x86-64.so.2',
             'ld-linux-aarch64.so.1', 'libasan.so.8', 'libubsan.so.1', 'libtsan.so.2'}
FORBIDDEN = {
    'printf', 'fprintf', 'vprintf', 'vfprintf', 'puts', 'fputs', 'putchar', 'putc', 'fputc',
    'perror', 'stdout', 'stderr', 'dprintf', 'vdprintf', 'syslog', '__printf_chk', '__fprintf_chk',
    '__vprintf_chk', '__vfprintf_chk', 'exit', '_exit', '_Exit', 'quick_exit', 'abort', 'raise', 'kill',
    '__assert_fail', 'signal', 'sigaction', 'atexit', 'at_quick_exit', 'system', 'setenv', 'putenv',
    'setlocale', 'srand', 'rand', 'strtok', 'err', 'errx', 'warn', 'warnx', 'error', 'longjmp'}

failures = []


def check(condition, text):
    print(('ok      ' if condition else 'FAILED  ') + text)
    if not condition:
        failures.append(text)


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(path, *options):
    """Pairs (kind, name); names without their version."""
    found = []
    for line in lines('nm', *options, path):
        match = re.match(r'^(?:[0-9a-f]+)?\s+([A-Za-z]) (\S+)$', line)
        if match:
            found.append((match[1], match[2].split('@')[0]))
    return found


shared, static = sys.argv[1:3]
prefix = ''.join(sys.argv[3:]) + 'lattn_'
root = pathlib.Path(__file__).absolute().parent.parent
header = root / 'include' / 'lattn' / 'lattn.h'
names = set(re.findall(r'LATTN_API[^;]*?\blattn_(\w+)\(', header.read_text(encoding='utf-8')))
declared = {prefix + name for name in names}
instrumented = any('san.so' in line for line in lines('readelf', '-d', shared))

def differences(found, wanted):
    return ''.join(f'; {"added" if n in found else "missing"}: {n}' for n in sorted(found ^ wanted))


listed = {name[len('lattn_'):] for name in
          (pathlib.Path(__file__).parent / 'exported.txt').read_text(encoding='utf-8').split()}
check(names == listed, f'the header declares the {len(listed)} functions of exported.txt'
      + differences(names, listed))

exported = {name for kind, name in symbols(shared, '-D', '--defined-only')}
check(exported == declared, f'the shared library exports the {len(declared)} functions of the header'
      + differences(exported, declared))

ours = {name for kind, name in symbols(static, '--defined-only', '--extern-only')}
stray = sorted(n for n in ours if not re.match(rf'({prefix}|__asan|__odr_asan|__ubsan|__tsan)', n))
check(bool(ours) and not stray, f'all {len(ours)} global names of the archive start with {prefix}: {stray or "yes"}')

# Where names have no prefix, the script that would give them one knows them all.
if prefix == 'lattn_':
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, root / 'tools' / 'symbol_prefix.py', 'x_', f'{folder}/names.h',
                        header, pathlib.Path(static).parent / 'backends.c', root / 'core',
                        root / 'backends'], check=True)
        known = set(re.findall(r'#define (\w+)', pathlib.Path(folder, 'names.h').read_text(encoding='utf-8')))
    missed = sorted(n for n in ours - known if n.startswith('lattn_'))
    check(not missed, f'tools/symbol_prefix.py knows all of them: {missed or "yes"}')

needed = {match[1] for line in lines('readelf', '-d', shared)
          if (match := re.search(r'\(NEEDED\).*\[(.*)\]', line))}
check(not needed - LIBRARIES, f'it needs {", ".join(sorted(needed)) or "nothing"}')

for path in (shared, static):
    asked = {name for kind, name in symbols(path, *(['-D'] if path == shared else []), '--undefined-only')}
    if instrumented:
        asked -= {'abort', 'exit'}
    check(bool(asked) and not asked & FORBIDDEN,
          f'{path.rsplit("/", 1)[-1]} prints nothing and ends nothing: {sorted(asked & FORBIDDEN) or "yes"}')

soname = [line for line in lines('readelf', '-d', shared) if 'SONAME' in line]
version = re.search(r'LATTN_VERSION_MAJOR (\d+)', header.read_text(encoding='utf-8'))[1]
library = f'lib{prefix[:-1]}.so.{version}'
check(len(soname) == 1 and f'[{library}]' in soname[0], f'its soname is {library}')

sys.exit(bool(failures))
