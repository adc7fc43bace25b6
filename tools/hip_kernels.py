"""What the matrix-core kernels use and what they should reach: hip_kernels.py [-t LLVM-TOOLS] BUNDLE

Registers, group memory and matrix instructions are read from the code objects of the bundle (in a
build folder, backends/hip/matrix.hipfb); bandwidths and clocks are AMD's published ones. The times
are bounds, not measurements. Prints Markdown.
"""
import argparse
import math
import pathlib
import re

from hip_code import code_objects, instructions, kernels

# Registers and group memory of a compute unit, and how they are given out.
UNITS = {64: {'vgprs': 512, 'granule': 8, 'most_waves': 8, 'shared': 65536, 'simds': 4},
         32: {'vgprs': 1536, 'granule': 24, 'most_waves': 16, 'shared': 131072, 'simds': 4}}
# Published: bytes and clocks a second, SIMDs, cycles of a 16x16x16 product, elements of work at once.
GPUS = {'gfx942': ('MI300X', 5.3e12, 2.1e9, 304 * 4, 16),
        'gfx90a': ('MI250X, one half', 1.6e12, 1.7e9, 110 * 4, 32),
        'gfx1100': ('RX 7900 XTX', 960e9, 2.5e9, 96 * 2, 32),
        'gfx1200': ('RX 9060 XT', 320e9, 3.1e9, 32 * 2, 16)}
CHUNK = 32


def products(which, d, e):
    """Of a group, for a chunk: from the definition of the walk."""
    d_tiles, e_tiles = d // 16, e // 16
    update = 2 * d_tiles * e_tiles
    return update if which == 'state' else 2 * update + 3 * d_tiles + 4 * e_tiles


def static_products(which, d, e, waves):
    """Of a wave's code, which does either tile of scores and is not repeated."""
    d_tiles, e_tiles = d // 16, e // 16 // waves
    update = 2 * d_tiles * e_tiles
    return update if which == 'state' else 2 * update + 2 * d_tiles + 4 * e_tiles


def both(values):
    """The bfloat16 kernel's and the float16 kernel's, as one where they agree."""
    return ', '.join(str(value) for value in dict.fromkeys(values))


def occupancy(kernel):
    """Waves of a SIMD and groups of a unit at once."""
    unit = UNITS[kernel['wave']]
    registers = math.ceil(kernel['vgprs'] / unit['granule']) * unit['granule']
    waves = min(unit['most_waves'], unit['vgprs'] // registers)
    group = kernel['threads'] // kernel['wave']
    return waves, min(waves * unit['simds'] // group, unit['shared'] // kernel['shared'])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('-t', dest='tools', default='/usr/lib/llvm-19/bin')
    parser.add_argument('bundle', type=pathlib.Path)
    options = parser.parse_args()
    rows = {}  # (arch, pass, d, e): of bfloat16 and of float16, the kernel and its matrix instructions
    for arch, code in code_objects(options.bundle):
        listing = instructions(options.tools, code)
        for kernel in kernels(options.tools, code):
            match = re.match(r'lattn_\w+?_(output|state)_(f16|bf16)_d(\d+)_e(\d+)', kernel['name'])
            which, dtype, d, e = match[1], match[2], int(match[3]), int(match[4])
            found = sum(bool(re.match(r'v_(mfma|wmma)_', line)) for line in listing[kernel['name']])
            rows.setdefault((arch, which, d, e), {})[dtype] = kernel, found
    print('| arch | pass | d, e | threads | VGPRs | scratch | LDS | waves/SIMD | groups/unit | products in the code (expected) |')
    print('| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |')
    for (arch, which, d, e), types in rows.items():
        pair = [types['bf16'], types['f16']]
        threads = pair[0][0]['threads']
        columns = [both(kernel[key] for kernel, _ in pair) for key in ('threads', 'vgprs', 'scratch', 'shared')]
        columns += [both(occupancy(kernel)[i] for kernel, _ in pair) for i in range(2)]
        expected = static_products(which, d, e, threads // pair[0][0]['wave'])
        print(f'| {arch} | {which} | {d}, {e} | ' + ' | '.join(columns) + f' | {both(found for _, found in pair)} ({expected}) |')
    print()
    print('Bounds for 16-bit inputs, 64 heads, 65536 tokens, by published bandwidths and clocks:')
    print()
    print('| GPU | d, e | bytes a token: floor, walk, in segments | products a token | floor, ms | walk, ms | in segments, ms | products, ms |')
    print('| --- | --- | --- | --- | --- | --- | --- | --- |')
    for arch, which, d, e in rows:
        if which != 'output' or arch not in GPUS:
            continue
        name, bandwidth, clock, simds, cycles = GPUS[arch]
        tiles = math.ceil(d / e)
        floor = 2 * (2 * d + 2 * d)
        walk = 2 * (2 * d * tiles + 2 * d)
        segments = walk + 2 * (d * tiles + d)
        per_token = products('output', d, e) * tiles / CHUNK
        tokens = 64 * 65536
        times = [tokens * size / bandwidth * 1e3 for size in (floor, walk, segments)]
        times.append(tokens * per_token * cycles / (simds * clock) * 1e3)
        print(f'| {name} | {d}, {d} | {floor}, {walk}, {segments} | {per_token:.1f} | '
              + ' | '.join(f'{time:.2f}' for time in times) + ' |')


main()
