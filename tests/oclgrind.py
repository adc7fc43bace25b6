"""Runs a program under Oclgrind, and fails if the program does or if Oclgrind has anything to report:
oclgrind.py OCLGRIND OPTION... PROGRAM ARGUMENT..."""
import subprocess
import sys
import tempfile

with tempfile.NamedTemporaryFile('r', suffix='.log', encoding='utf-8', errors='replace') as log:
    command = [sys.argv[1], '--log', log.name, *sys.argv[2:]]
    status = subprocess.run(command, check=False).returncode
    report = log.read()
if report.strip():
    lines = report.splitlines()
    print('\n'.join(lines[:60]), file=sys.stderr)
    print(f'Oclgrind reported {len(lines)} lines', file=sys.stderr)
sys.exit(status or bool(report.strip()))
