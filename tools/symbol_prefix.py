"""Writes a header that puts a prefix before names: symbol_prefix.py PREFIX OUT FILE|FOLDER...

Of a file, the functions that it exports and its extern objects; of a folder, every function that
its headers declare besides. With --depfile, what was read.
"""
import argparse
import pathlib
import re

EXPORTED = re.compile(r'LATTN_API[^;]*?\b(lattn_\w+)\(')
FUNCTION = re.compile(r'\b(lattn_\w+)\s*\(')
OBJECT = re.compile(r'\bextern\b[^;(]*?\b(lattn_\w+)\s*(?:\[[^;]*)?;')


def names_in(path, inside):
    text = path.read_text(encoding='utf-8')
    objects = set(OBJECT.findall(text))
    return (objects | {name + '_size' for name in objects}  # tools/embed.py adds sizes
            | set((FUNCTION if inside and path.suffix == '.h' else EXPORTED).findall(text)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('prefix')
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('inputs', nargs='+', type=pathlib.Path)
    parser.add_argument('--depfile', type=pathlib.Path)
    options = parser.parse_args()
    if not re.fullmatch(r'[A-Za-z_]\w*', options.prefix, re.ASCII):
        raise SystemExit(f'symbol_prefix = {options.prefix!r}: must be the start of a C identifier')

    files = [(path, False) for path in options.inputs if path.is_file()]
    for folder in options.inputs:
        if folder.is_dir():
            files += [(p, True) for p in sorted(folder.rglob('*')) if p.suffix in ('.h', '.c')]
    names = set().union(*(names_in(*file) for file in files))
    lines = [f'#define {name} {options.prefix}{name}\n' for name in sorted(names)]
    options.out.write_text('/* The names of this copy of the library (Meson option symbol_prefix). */\n'
                           + ''.join(lines), encoding='utf-8')
    if options.depfile:
        options.depfile.write_text(f'{options.out}: {" ".join(str(path) for path, _ in files)}\n', encoding='utf-8')


main()
