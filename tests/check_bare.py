"""Runs the program `bare` where there is little: check_bare.py PROGRAM SCRATCH

No environment, no home, caches that cannot be written, drivers that are broken, a read-only file
system, closed descriptors. Each time it must compute on what devices are left, the reference at
the least, and the library must print nothing.
"""
import os
import pathlib
import shutil
import subprocess
import sys

program, scratch = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
(scratch / 'file').write_text('in the way of a folder\n', encoding='utf-8')
(scratch / 'broken').mkdir()
for name in ('libOpenCL.so.1', 'libcuda.so.1', 'libamdhip64.so', 'libamdhip64.so.5',
             'libamdhip64.so.6', 'libamdhip64.so.7'):
    (scratch / 'broken' / name).write_bytes(b'')
os.chmod(scratch / 'broken', 0o555)

ours = {'POCL_CACHE_DIR': str(scratch / 'pocl'), 'HOME': str(scratch / 'home')}
keep = {k: os.environ[k] for k in ('PATH', 'LD_LIBRARY_PATH', 'ASAN_OPTIONS', 'LSAN_OPTIONS', 'OCL_ICD_VENDORS')
        if k in os.environ}
broken = {'LD_LIBRARY_PATH': ':'.join(filter(None, [str(scratch / 'broken'), keep.get('LD_LIBRARY_PATH', '')]))}
own_user = [] if os.geteuid() == 0 else ['--user', '--map-root-user']
read_only = ['unshare', *own_user, '--mount', 'sh', '-c', 'mount -o remount,bind,ro / && exec "$0"']

ALL = '<all that open>'
cases = [
    # what it is called, its environment, the command, the backends it must run on
    ('as it is', ours | keep, [program], ALL),
    ('without OpenCL platforms', ours | keep | {'OCL_ICD_VENDORS': '/nonexistent/'}, [program], None),
    ('with drivers that do not load', ours | keep | broken, [program], 'reference'),
    ('without any environment', {k: v for k, v in keep.items() if k not in ('PATH', 'OCL_ICD_VENDORS')} | broken, [program], 'reference'),
    ('with a file where the cache should be', ours | keep | {'XDG_CACHE_HOME': str(scratch / 'file')}, [program], None),
    ('with a cache folder that cannot be made', ours | keep | {'XDG_CACHE_HOME': '/proc/none'}, [program], None),
    ('with a relative cache folder', ours | keep | {'XDG_CACHE_HOME': 'here', 'HOME': 'there'}, [program], None),
    ('without standard input and error', ours | keep, ['sh', '-c', 'exec "$0" <&- 2>&-', program], None),
]
if subprocess.run([*read_only, 'true'], capture_output=True).returncode == 0:
    cases.append(('on a read-only file system', ours | keep, [*read_only, program], None))

failed = 0
for name, environment, command, backends in cases:
    result = subprocess.run(command, env=environment, cwd='/', capture_output=True, text=True)
    line = result.stdout.strip()
    fine = (result.returncode == 0 and result.stderr == '' and line.split()[-1:] == ['reference']
            and line.count('\n') == 0
            and (backends is None or line == backends or (backends == ALL and '!' not in line)))
    failed += not fine
    print(f'{"ok      " if fine else "FAILED  "}{name}: {line}'
          + ('' if fine else f' (status {result.returncode}, {result.stderr!r})'))
if os.path.exists('/here'):
    failed += 1
    print('FAILED  a relative cache folder was made in the current folder')
sys.exit(bool(failed))
