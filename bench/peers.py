"""lattn beside other implementations of lightning attention, in one run on one NVIDIA GPU.

    peers.py -o FOLDER [--source lightning_attn.py] [--kittens LIBRARY] [--seconds S]
             [--part errors,table,decode,sweep] [--only lattn,source,fla,kittens]

The lattn package and flash-linear-attention (fla) are taken from PYTHONPATH, the others from paths
(bench/peer_kernels.py); one that is not there is left out, with a line. Writes benchmark.csv, with a
line for each shape and implementation, and benchmark.md, made from it; tools/pictures.py draws it.

Every figure is of CUDA graph replays. A graph has as many calls as it takes for their inputs to
exceed the L2 cache twice over, each call on inputs of its own; a time is the median of replays over
the calls of one. The floor of a shape is what q, k, v and o (decode: the states, twice) take at the
bandwidth of a copy on the same device in the same run. Shapes that would not fit --gib are left out,
and when --seconds are over, what is left.
"""
import argparse
import collections
import csv
import datetime
import functools
import itertools
import pathlib
import statistics
import subprocess
import sys
import time

import torch

import peer_kernels

Shape = collections.namedtuple('Shape', 'part op b h n d dtype precision')
DTYPES = {'f32': torch.float32, 'bf16': torch.bfloat16}
AGREE = 2e-2  # the largest error at which implementations compute the same thing
FIELDS = ['part', 'op', 'b', 'h', 'n', 'd', 'e', 'dtype', 'precision', 'implementation', 'ms', 'spread',
          'floor_ms', 'time_per_floor', 'replays', 'calls']


def shapes_of(part):
    if part == 'table':
        sizes = [(1, 64, 4096, 128), (1, 64, 65536, 128), (8, 64, 2048, 128), (32, 64, 1024, 128),
                 (1, 8, 131072, 128), (16, 16, 4096, 64)]
        return [Shape(part, 'prefill', *size, 'bf16', 'f32') for size in sizes] + [
            Shape(part, 'prefill', 1, 64, 65536, 128, 'f32', precision) for precision in ('f32', 'tf32')]
    if part == 'decode':
        return [Shape(part, 'decode', b, 64, 1, 128, 'bf16', 'f32') for b in (1, 2, 4, 8, 16, 32, 64, 128, 256)]
    if part == 'sweep':  # the longest first, since the others' autotuners decide at the first of a kind
        return [Shape(part, 'prefill', max(1, bh // 64), min(bh, 64), n, d, 'bf16', 'f32')
                for d in (128, 64) for bh in (64, 8, 256, 32, 4, 1024) for n in (32768, 8192, 2048, 512, 128)]
    return []


# ---- data ----------------------------------------------------------------------------------------

def slopes_of(heads):
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, device='cuda') / heads)


def random_qkv(shape, generator):
    """q, k, v as `lattn verify` has them: k is scaled so that q . k is of the order of 1."""
    size = (shape.b, shape.h, shape.n, shape.d)
    q, k, v = (torch.empty(size, dtype=DTYPES[shape.dtype], device='cuda').normal_(0, deviation, generator=generator)
               for deviation in (1, shape.d ** -0.5, 1))
    return q, k, v


def bytes_of(shape):
    tokens = 4 * shape.b * shape.h * shape.n * shape.d * DTYPES[shape.dtype].itemsize
    states = 2 * 4 * shape.b * shape.h * shape.d * shape.d
    return tokens + (states if shape.op == 'decode' else 0)


# ---- errors --------------------------------------------------------------------------------------

def exact_prefill(q, k, v, slopes, decay, block=256):
    """Outputs and final states in float64, as a sum over all pairs of tokens: the recurrence written
    out. decay 'vllm' weighs what crosses a block as vLLM's prefill does, larger by exp(s)."""
    q, k, v, s = q.double(), k.double(), v.double(), slopes.double()[None, :, None, None]
    t = torch.arange(q.shape[2], device=q.device)
    behind = (t[:, None] - t[None, :]).double()
    if decay == 'vllm':
        behind = behind - (t[:, None] // block != t[None, :] // block).double()
    weights = torch.where(t[:, None] >= t[None, :], torch.exp(-s * behind.clamp(min=0)), 0.0)
    o = (q @ k.transpose(2, 3) * weights) @ v
    left = torch.exp(-s * (q.shape[2] - 1 - t)[:, None].double())
    return o, (k * left).transpose(2, 3) @ v


def exact_decode(q, k, v, pool, slopes, slots):
    states = torch.exp(-slopes.double())[None, :, None, None] * pool[slots.long()].double()
    states = states + k.double().transpose(2, 3) * v.double()
    return (q.double() @ states).reshape(q.shape[0], -1), states


def relative(value, exact):
    return float((value.double() - exact).norm() / exact.norm())


def measure_errors(kernels, generator):
    """Rows of (shape, implementation, rule, error of o, error of the state), and whether all agree."""
    rows, fine = [], True
    for d, dtype, precision in ((128, 'bf16', 'f32'), (64, 'bf16', 'f32'), (128, 'f32', 'f32'), (128, 'f32', 'tf32')):
        shape = Shape('errors', 'prefill', 4, 2, 1024, d, dtype, precision)
        q, k, v = random_qkv(shape, generator)
        slopes = slopes_of(shape.h)
        errors = {}
        for kernel in kernels:
            if kernel.refuses(shape):
                continue
            o, state = kernel.prefill(q, k, v, slopes, precision)()
            for decay in dict.fromkeys((kernel.decay, 'recurrence')):
                exact_o, exact_state = exact_prefill(q, k, v, slopes, decay)
                error = relative(o, exact_o), None if state is None else relative(state, exact_state)
                rows.append((shape, kernel.name, decay, *error))
                if decay == kernel.decay:
                    errors[kernel.name] = error[0]
        fine = fine and max(errors.values()) < AGREE
        if precision == 'f32' and 'lattn' in errors:
            fine = fine and errors['lattn'] <= errors.get('fla', 1)
    shape = Shape('errors', 'decode', 5, 8, 1, 128, 'bf16', 'f32')
    q, k, v = random_qkv(shape, generator)
    pool = torch.randn(5, 8, 128, 128, device='cuda', generator=generator)
    slots, slopes = torch.arange(5, dtype=torch.int32, device='cuda'), slopes_of(8)
    exact_o, exact_state = exact_decode(q, k, v, pool, slopes, slots)
    for kernel in kernels:
        if not kernel.refuses(shape):
            o, state = kernel.decode(q, k, v, pool.clone(), slopes, slots)()
            rows.append((shape, kernel.name, 'recurrence', relative(o, exact_o), relative(state, exact_state)))
            fine = fine and rows[-1][3] < AGREE
    return rows, fine


# ---- time ----------------------------------------------------------------------------------------

class Clock:
    def __init__(self):
        properties = torch.cuda.get_device_properties(0)
        self.rotate = 4 * properties.L2_cache_size  # decode counts its states twice
        self.stream = torch.cuda.Stream()

    def repeat(self, work, parts, seconds):
        """Milliseconds of one of the equal parts of `work`: median, spread of the quartiles, repeats."""
        times = []
        with torch.cuda.stream(self.stream):
            work()
            self.stream.synchronize()
            end = time.monotonic() + seconds
            while len(times) < 5 or (time.monotonic() < end and len(times) < 25):
                begin, done = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                work()
                done.record()
                done.synchronize()
                times.append(begin.elapsed_time(done) / parts)
        quarter, median, three = statistics.quantiles(times, n=4)
        return median, (three - quarter) / median, len(times)

    def replays(self, functions, seconds):
        with torch.cuda.stream(self.stream):
            functions[0]()
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                for function in functions:
                    function()
        return self.repeat(graph.replay, len(functions), seconds)

    def device_rows(self):
        """What the device itself can do: a copy of n bytes, a product of n x n matrices in bfloat16."""
        size, side = 1 << 30, 8192
        source, target = (torch.zeros(size, dtype=torch.uint8, device='cuda') for _ in range(2))
        x, y = (torch.randn(side, side, dtype=torch.bfloat16, device='cuda') for _ in range(2))
        works = {('copy', size): lambda: target.copy_(source), ('matmul', side): lambda: x @ y}
        rows = []
        for (op, n), work in works.items():  # not from a graph, whose copies are slower
            milliseconds, spread, repeats = self.repeat(lambda: [work() for _ in range(4)], 4, 0.05)
            rows.append({'part': 'device', 'op': op, 'n': n, 'ms': f'{milliseconds:.6g}', 'spread': f'{spread:.3f}',
                         'replays': repeats, 'calls': 4})
        return rows


def functions_of(kernel, shape, calls, generator):
    slopes = slopes_of(shape.h)
    if shape.op == 'prefill':
        return [kernel.prefill(*random_qkv(shape, generator), slopes, shape.precision) for _ in range(calls)]
    pool = torch.randn(calls * shape.b, shape.h, shape.d, shape.d, device='cuda', generator=generator)
    functions = []
    for call in range(calls):
        slots = call * shape.b + torch.randperm(shape.b, device='cuda', generator=generator)
        functions.append(kernel.decode(*random_qkv(shape, generator), pool, slopes, slots.int()))
    return functions


def measure(kernel, shape, clock, copy_rate, generator):
    calls = min(512, -(-clock.rotate // bytes_of(shape)))
    with torch.cuda.stream(clock.stream):
        functions = functions_of(kernel, shape, calls, generator)
    milliseconds, spread, replays = clock.replays(functions, 0.03)
    floor = bytes_of(shape) / copy_rate
    return dict(zip(FIELDS, (
        shape.part, shape.op, shape.b, shape.h, shape.n, shape.d, shape.d, shape.dtype, shape.precision,
        kernel.name, f'{milliseconds:.6g}', f'{spread:.3f}', f'{floor:.6g}', f'{milliseconds / floor:.3f}',
        replays, len(functions))))


def copy_rate_of(device):
    """Bytes read and written in a millisecond."""
    return 2 * device[0]['n'] / float(device[0]['ms'])


# ---- the report ----------------------------------------------------------------------------------

def shape_text(row):
    text = ', '.join(str(row[key]) for key in ('b', 'h', 'n'))
    return text if row['op'] == 'prefill' else str(row['b'])


def time_table(rows, names):
    """A line for each shape: everybody's time over the floor, and ours over the fastest other's."""
    lines = [['shape', 'd = e', 'type', 'floor, ms', *names, 'lattn / fastest peer'], ['---'] * (5 + len(names))]
    for key, group in grouped(rows):
        times = {row['implementation']: float(row['ms']) for row in group}
        floor, first = float(group[0]['floor_ms']), group[0]
        others = [times[name] for name in times if name != 'lattn']
        kind = first['dtype'] if first['precision'] == 'f32' or first['dtype'] != 'f32' else 'tf32'
        lines.append([shape_text(first), str(first['d']), kind, f'{floor:.4f}',
                      *(f'{times[name] / floor:.2f}' if name in times else '-' for name in names),
                      f"{times['lattn'] / min(others):.2f}" if others and 'lattn' in times else '-'])
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def grouped(rows):
    groups = collections.OrderedDict()
    for row in rows:
        groups.setdefault(tuple(row[key] for key in FIELDS[:9]), []).append(row)
    return groups.items()


def growth_table(rows, d):
    """Our picoseconds per head and token: equal along a line where time is linear in n, down a column
    where it is linear in b * h."""
    ours = {(int(row['b']) * int(row['h']), int(row['n'])): float(row['ms']) for row in rows
            if row['implementation'] == 'lattn' and int(row['d']) == d}
    if not ours:
        return ''
    heads, lengths = (sorted({key[i] for key in ours}) for i in (0, 1))
    lines = [['b * h', *(f'n = {n}' for n in lengths)], ['---'] * (1 + len(lengths))]
    for bh in heads:
        lines.append([str(bh), *(f'{ours[bh, n] * 1e9 / bh / n:.0f}' if (bh, n) in ours else '-' for n in lengths)])
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def error_table(errors):
    lines = [['op', 'd = e', 'type', 'implementation', 'held against', 'o', 'state'], ['---'] * 7]
    for shape, name, decay, o, state in errors:
        kind = shape.precision if shape.dtype == 'f32' else shape.dtype
        lines.append([shape.op, str(shape.d), kind, name, decay, f'{o:.2e}', '-' if state is None else f'{state:.2e}'])
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def report(head, errors, rows, names):
    parts = [head]
    if errors:
        parts += ['## Errors', 'Relative L2 distance from float64, b = 4, h = 2, n = 1024 (decode: 5 rows, h = 8).',
                  error_table(errors)]
    titles = {'table': 'Prefill, output and final state: time / floor', 'decode': 'Decode, 64 heads, d = e = 128, '
              'float32 states: time / floor', 'sweep': 'Prefill over lengths and heads: time / floor'}
    for part, title in titles.items():
        some = [row for row in rows if row['part'] == part]
        if part == 'sweep':
            some.sort(key=lambda row: (-row['d'], row['b'] * row['h'], row['n']))
        if some:
            parts += ['## ' + title, time_table(some, names)]
    for d in (128, 64):
        table = growth_table([row for row in rows if row['part'] == 'sweep'], d)
        if table:
            parts += [f'## How lattn grows, d = e = {d}: picoseconds per head and token', table]
    return '\n\n'.join(parts) + '\n'


TITLE = """# Beside other implementations

Made by `bench/peers.py`; the figures are also in [benchmark.csv](benchmark.csv).

![Roofline, and time over the floor](roofline.svg)

![How time grows](growth.svg)"""
METHOD = """Times are medians of CUDA graph replays, on inputs that exceed the L2 cache. The floor is what a copy on the
same device in the same run takes for the bytes of q, k, v and o (decode: also of the states, read and written);
1.00 is as fast as that. Each gets its inputs in the layout that it likes. All but ThunderKittens also return final
states. *source* is vLLM's lightning_attn.py: its prefill returns the state of every block, and given
bfloat16 it needs slopes in bfloat16. *fla* is flash-linear-attention: chunk_simple_gla, and for decode
fused_recurrent_simple_gla on states without slots; *fla fused* its fused_chunk_simple_gla. *kittens* is
ThunderKittens' linear_attention, which adds to outputs that are cleared first.

In the last column, what is above 1 is where another is ahead."""


@functools.cache
def driver_version():
    query = ['nvidia-smi', '--query-gpu=driver_version', '--format=csv,noheader', '-i', '0']
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()


def header(kernels, missing, copy_rate, commit):
    device = torch.cuda.get_device_properties(0)
    versions = '; '.join(f'{kernel.name} {kernel.version}'.strip() for kernel in kernels)
    lines = [f'{device.name}, driver {driver_version()}, CUDA {torch.version.cuda}, torch {torch.__version__}, '
             f'{datetime.date.today()}, copy bandwidth {copy_rate / 1e9:.2f} TB/s. {versions}; lattn at commit '
             f'{commit}.', *(f'Left out: {line}.' for line in missing)]
    return '\n\n'.join([TITLE, *lines, METHOD])


# ---- the run -------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(description='lattn beside other implementations of lightning attention')
    parser.add_argument('-o', '--output', type=pathlib.Path, required=True, help='folder for the results')
    parser.add_argument('--source', help="vLLM's vllm/model_executor/layers/lightning_attn.py")
    parser.add_argument('--kittens', help="shared library around ThunderKittens' kernel")
    parser.add_argument('--only', default='lattn,source,fla,kittens', help='implementations, comma-separated')
    parser.add_argument('--part', default='errors,table,decode,sweep', help='what to measure, comma-separated')
    parser.add_argument('--seconds', type=float, default=120, help='stop measuring after this')
    parser.add_argument('--gib', type=float, default=9, help='largest q, k, v and o together')
    parser.add_argument('--commit', default='unknown', help='of lattn, for the report')
    parser.add_argument('--compile', action='store_true',
                        help='call everything once and measure nothing: fills the caches of compilers')
    return parser.parse_args()


def measure_all(kernels, shapes, clock, copy_rate, options, begin):
    """Yields a row, or None for which there was no time."""
    generator = torch.Generator('cuda').manual_seed(1)
    for shape, kernel in itertools.product(shapes, kernels):
        seconds = time.monotonic() - begin
        if kernel.refuses(shape):
            continue
        if seconds > options.seconds:
            yield None
            continue
        print(f'{seconds:5.1f} s  {shape.part}: {shape_text(shape._asdict())}, {kernel.name}', file=sys.stderr)
        try:
            if options.compile:
                functions_of(kernel, shape, 1, generator)[0]()
            else:
                yield measure(kernel, shape, clock, copy_rate, generator)
        except torch.OutOfMemoryError as error:
            print(f'left out: {str(error).splitlines()[0]}', file=sys.stderr)
        torch.cuda.empty_cache()


def write(options, kernels, missing, errors, device, rows):
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / 'benchmark.csv', 'w', newline='', encoding='utf-8') as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator='\n')
        writer.writeheader()
        writer.writerows(device + rows)
    names = [kernel.name for kernel in kernels]
    text = report(header(kernels, missing, copy_rate_of(device), options.commit), errors, rows, names)
    (options.output / 'benchmark.md').write_text(text, encoding='utf-8')


def main():
    options = parse()
    parts = options.part.split(',')
    begin = time.monotonic()
    torch.set_grad_enabled(False)
    kernels, missing = peer_kernels.find(options)
    clock = Clock()
    device, rows, errors, fine = clock.device_rows(), [], [], True
    if 'errors' in parts:
        errors, fine = measure_errors(kernels, torch.Generator('cuda').manual_seed(0))
    shapes = [shape for part in parts for shape in shapes_of(part) if bytes_of(shape) <= options.gib * 2 ** 30]
    late = 0
    for row in measure_all(kernels, shapes, clock, copy_rate_of(device), options, begin):
        if row is None:
            late += 1
            continue
        rows.append(row)  # written at once, since a device does not recover from a kernel's fault
        write(options, kernels, missing, errors, device, rows)
    if late:
        missing.append(f'{late} measurements, when {options.seconds:.0f} s were over')
        write(options, kernels, missing, errors, device, rows)
    print(f'{len(rows)} measurements in {time.monotonic() - begin:.0f} s: {options.output}')
    if not fine:
        sys.exit(f'errors: somebody is off by {AGREE}, or lattn is less exact than fla')


if __name__ == '__main__':
    main()
