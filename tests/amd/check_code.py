"""What is in the bundles of AMD device code: check_code.py CLANG-TOOLS-FOLDER CATALOG FILE...

A file is a bundle, or the assembly (.s) of one program for one architecture.

Every kernel of every architecture must use no scratch memory and at most 64 KiB of group memory,
every row of the catalogue must find its kernel with the threads and group memory that the row says,
and every matrix row's code must contain the matrix instruction of its type.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tools'))
from hip_code import assembly, code_objects, instructions, kernels  # noqa: E402

MATRIX = {
    ('mfma', 'f16'): r'v_mfma_f32_16x16x16_?f16',
    ('mfma', 'bf16'): r'v_mfma_f32_16x16x16_?bf16',
    ('wmma', 'f16'): r'v_wmma_f32_16x16x16_f16',
    ('wmma', 'bf16'): r'v_wmma_f32_16x16x16_bf16',
}

FAMILIES = {'mfma': ('gfx90a', 'gfx942', 'gfx950'), 'wmma': ('gfx110', 'gfx115', 'gfx120')}


def has_kernel(name, arch):
    """Should the architecture have the row's kernel?"""
    family = name.split('_')[1]
    return arch.startswith(FAMILIES[family]) if family in FAMILIES else True


def contents(tools, path):
    """Architecture, kernels and instructions of each code object."""
    if path.suffix == '.s':
        yield assembly(path)
        return
    for arch, code in code_objects(path):
        yield arch, kernels(tools, code), instructions(tools, code)


def main():
    tools, rows_program, *files = sys.argv[1:]
    rows = {}
    for line in subprocess.run([rows_program], check=True, capture_output=True, text=True).stdout.split('\n'):
        if line:
            entry, threads, shared = line.split()
            rows[entry] = int(threads), int(shared)
    problems, found, objects, disassembled = [], {}, 0, 0
    for path in files:
        for arch, found_here, listing in contents(tools, pathlib.Path(path)):
            objects += 1
            for kernel in found_here:
                name = kernel['name']
                where = f'{name} for {arch}'
                found.setdefault(arch, set()).add(name)
                if kernel['scratch']:
                    problems.append(f'{where}: {kernel["scratch"]} bytes of scratch memory')
                if kernel['shared'] > 65536:
                    problems.append(f'{where}: {kernel["shared"]} bytes of group memory')
                if name not in rows:
                    problems.append(f'{where}: no row of the catalogue has it')
                    continue
                threads, shared = rows[name]
                if kernel['threads'] != threads:
                    problems.append(f'{where}: groups of {kernel["threads"]}, the row says {threads}')
                if kernel['shared'] != shared:
                    problems.append(f'{where}: {kernel["shared"]} bytes of group memory, the row says {shared}')
                matrix = re.match(r'lattn_(mfma|wmma)_\w+?_(f16|bf16)_', name)
                if matrix:
                    disassembled += 1
                    if not re.search(MATRIX[matrix.groups()], '\n'.join(listing[name])):
                        problems.append(f'{where}: no matrix instruction')
    problems += [f'{name}: a row without a kernel for {arch}' for arch, names in found.items() for name in rows
                 if has_kernel(name, arch) and name not in names]
    print(*problems, f'{objects} code objects for {" ".join(found)}, {sum(map(len, found.values()))} kernels, '
          f'{disassembled} with matrix instructions', sep='\n')
    matrix_archs = [arch for arch in found if arch.startswith(sum(FAMILIES.values(), ()))]
    sys.exit(bool(problems) or not found or bool(matrix_archs) != bool(disassembled))


main()
