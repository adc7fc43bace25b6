#!/usr/bin/env python3
"""How close the OpenCL rows for CPUs come to the machine: cpu_ratio.py BUILD [ROUNDS]

Prefill against the rate of OpenBLAS's sgemm, decode against copy bandwidth. Both run in turns,
ROUNDS times (3), and the best of each counts, so that other work on the machine hurts both alike.
"""
import json
import re
import subprocess
import sys

PREFILL = [('1,8,4096,128,128', 'f32'), ('1,8,4096,128,128', 'f16'), ('1,8,4096,128,128', 'bf16'),
           ('1,1,4096,128,128', 'f32'), ('1,8,4096,64,64', 'f32'), ('1,4,4096,256,256', 'f32'),
           ('1,8,4096,100,100', 'f32'), ('16,8,100,128,128', 'f32')]
DECODE = [('64,32,1,128,128', 'f32'), ('64,32,1,128,128', 'bf16'), ('64,32,1,64,64', 'f32'),
          ('1,32,1,128,128', 'f32'), ('64,32,4,128,128', 'f32')]


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sgemm(build):
    return float(re.search(r'([\d.]+) GFLOP/s', output([f'{build}/bench/openblas']))[1])


def bench(build, op, shape, dtype):
    return json.loads(output([f'{build}/tools/lattn/lattn', 'bench', '--backend', 'opencl', '--op',
                              op, '--shape', shape, '--dtype', dtype, '--json']))[0]


def report(shape, dtype, ours, theirs):
    print(f'{shape:20} {dtype:5} {ours:8.1f} {theirs:8.1f} {ours / theirs:6.2f}', flush=True)


def main():
    build, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print('prefill b,h,n,d,e    dtype  GFLOP/s    sgemm  ratio')
    for shape, dtype in PREFILL:
        pairs = [(bench(build, 'prefill', shape, dtype)['gflop_s'], sgemm(build))
                 for _ in range(rounds)]
        report(shape, dtype, *map(max, zip(*pairs)))
    print('decode b,h,n,d,e     dtype     GB/s     copy  ratio')
    for shape, dtype in DECODE:
        runs = [bench(build, 'decode', shape, dtype) for _ in range(rounds)]
        report(shape, dtype, max(r['gb_s'] for r in runs), max(r['copy_gb_s'] for r in runs))


main()
