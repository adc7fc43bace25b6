"""What is in the bundles of AMD device code: check_code.py CLANG-TOOLS-FOLDER CATALOG BUNDLE...

Every kernel of every architecture must use no scratch memory and at most 64 KiB of group memory,
every row of the catalogue must find its kernel with the threads and group memory that the row says,
and every matrix row's code must contain the matrix instruction of its type.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tools'))
from hip_code import code_objects, instructions, kernels  # noqa: E402

MATRIX = {
    ('mfma', 'f16'): r'v_mfma_f32_16x16x16_?f16',
    ('mfma', 'bf16'): r'v_mfma_f32_16x16x16_?bf16',
    ('wmma', 'f16'): r'v_wmma_f32_16x16x16_f16',
    ('wmma', 'bf16'): r'v_wmma_f32_16x16x16_bf16',
}


def main():
    tools, rows_program, *bundles = sys.argv[1:]
    rows = {}
    for line in subprocess.run([rows_program], check=True, capture_output=True, text=True).stdout.split('\n'):
        if line:
            entry, threads, shared = line.split()
            rows[entry] = int(threads), int(shared)
    problems, found, objects, disassembled = [], set(), 0, 0
    for bundle in bundles:
        for arch, code in code_objects(pathlib.Path(bundle)):
            objects += 1
            listing = instructions(tools, code)
            for kernel in kernels(tools, code):
                name = kernel['name']
                where = f'{name} for {arch}'
                found.add(name)
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
    problems += [f'{name}: a row without a kernel' for name in rows if name not in found]
    print(*problems, f'{objects} code objects, {len(found)} kernels, {disassembled} with matrix instructions', sep='\n')
    sys.exit(bool(problems) or not disassembled)


main()
