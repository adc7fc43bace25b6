"""Prints 'N passed, N failed, N skipped' from Meson's testlog.json, one test program a count."""
import json
import sys

results = [json.loads(line)['result'] for line in open(sys.argv[1], encoding='utf-8')]
passed = sum(r in ('OK', 'EXPECTEDFAIL') for r in results)
skipped = results.count('SKIP')
print(f'{passed} passed, {len(results) - passed - skipped} failed, {skipped} skipped')
