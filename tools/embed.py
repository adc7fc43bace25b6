"""Turns files into a C source with one string or byte array: embed.py text|bytes SYMBOL OUT IN...

text: the inputs, joined, each `#include "name"` replaced once by that file (looked up beside the
including file and in the folders given with -I), as a NUL-terminated `const char SYMBOL[]`.
bytes: one input as `const unsigned char SYMBOL[]` and its `const unsigned long SYMBOL_size`.
"""
import argparse
import pathlib
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"\s*$')


def find(name, beside, folders):
    for folder in [beside, *folders]:
        if (folder / name).is_file():
            return (folder / name).resolve()
    raise SystemExit(f'{name}: not found beside {beside} nor in {[str(f) for f in folders]}')


def inline(path, folders, seen):
    if path in seen:
        return ''
    seen.add(path)
    lines = []
    for line in path.read_text().splitlines():
        match = INCLUDE.match(line)
        lines.append(inline(find(match[1], path.parent, folders), folders, seen) if match else line + '\n')
    return ''.join(lines)


def literal(data):
    """C string literals of at most 64 bytes each: octal escapes keep any byte, at any length."""
    plain = set(range(32, 127)) - set(b'"\\?')
    rows = []
    for start in range(0, len(data), 64):
        row = ''.join(chr(b) if b in plain else f'\\{b:03o}' for b in data[start:start + 64])
        rows.append(f'    "{row}"')
    return '\n'.join(rows) or '    ""'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('kind', choices=['text', 'bytes'])
    parser.add_argument('symbol')
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('inputs', nargs='+', type=pathlib.Path)
    parser.add_argument('-I', dest='folders', action='append', default=[], type=pathlib.Path)
    options = parser.parse_args()
    if options.kind == 'text':
        seen = set()
        data = ''.join(inline(p.resolve(), options.folders, seen) for p in options.inputs).encode()
        text = f'extern const char {options.symbol}[];\nconst char {options.symbol}[] =\n{literal(data)};\n'
    else:
        data = options.inputs[0].read_bytes()
        text = (f'extern const unsigned char {options.symbol}[{len(data) + 1}];\n'
                f'extern const unsigned long {options.symbol}_size;\n'
                f'const unsigned char {options.symbol}[{len(data) + 1}] __attribute__((aligned(64))) =\n'
                f'{literal(data)};\nconst unsigned long {options.symbol}_size = {len(data)};\n')
    # C promises strings of 4095 bytes only; every compiler that matters takes any length.
    options.out.write_text('#pragma GCC diagnostic ignored "-Woverlength-strings"\n' + text)


main()
