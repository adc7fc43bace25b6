"""The command, end to end, on the reference device: command_test.py LATTN GOLDEN [OPTION...]"""
import json
import math
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LATTN = str(pathlib.Path(sys.argv[1]).resolve())
GOLDEN = pathlib.Path(sys.argv[2]).resolve()
REFERENCE = ['--backend', 'reference']
CODES = {'F32': 'f', 'F64': 'd', 'F16': 'e', 'BF16': 'H', 'I32': 'i', 'I64': 'q', 'U8': 'B'}


def count(shape):
    return math.prod(shape)


def to_bf16(value):
    """Of a float with no more than 8 significant bits: no rounding."""
    return struct.unpack('<I', struct.pack('<f', value))[0] >> 16


def save(path, tensors):
    """tensors: name -> (dtype, shape, values)"""
    header, data = {}, b''
    for name, (dtype, shape, values) in tensors.items():
        if dtype == 'BF16':
            values = [to_bf16(v) for v in values]
        raw = struct.pack(f'<{len(values)}{CODES[dtype]}', *values)
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack('<Q', len(text)) + text + data)


def load(path):
    raw = pathlib.Path(path).read_bytes()
    length = struct.unpack('<Q', raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), raw[8 + length:]
    header.pop('__metadata__', None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry['data_offsets']
        values = struct.unpack(f'<{count(entry["shape"])}{CODES[entry["dtype"]]}', data[begin:end])
        if entry['dtype'] == 'BF16':
            values = [struct.unpack('<f', struct.pack('<I', v << 16))[0] for v in values]
        tensors[name] = (entry['dtype'], entry['shape'], list(values))
    return tensors


def numbers(size, seed):
    """Multiples of 1/8 in [-2, 2): exact in every dtype."""
    return [((i * 7919 + seed * 104729) * 2654435761 % 2 ** 32 >> 27) / 8 - 2 for i in range(size)]


def problem(dtype='F32', b=2, h=2, n=5, d=3, e=2, qk=None, **more):
    qk = qk or h
    tensors = {
        'q': (dtype, [b, qk, n, d], numbers(b * qk * n * d, 1)),
        'k': (dtype, [b, qk, n, d], numbers(b * qk * n * d, 2)),
        'v': (dtype, [b, h, n, e], numbers(b * h * n * e, 3)),
        'slopes': ('F32', [h], [0.5 * i for i in range(h)]),
    }
    tensors.update(more)
    return tensors


def recurrence(tensors, state):
    """o and the states of token-by-token recurrence; `state` is [b, h, d, e], flat, or None."""
    b, h, n, e = tensors['v'][1]
    qk, d = tensors['q'][1][1], tensors['q'][1][3]
    q, k, v, slopes = (tensors[name][2] for name in ('q', 'k', 'v', 'slopes'))
    state = list(state) if state else [0.0] * (b * h * d * e)
    o = []
    for i in range(b):
        for j in range(h):
            at = (i * h + j) * d * e
            g = math.exp(-slopes[j])
            for t in range(n):
                x = ((i * qk + j * qk // h) * n + t) * d
                y = ((i * h + j) * n + t) * e
                for r in range(d):
                    for c in range(e):
                        state[at + r * e + c] = g * state[at + r * e + c] + k[x + r] * v[y + c]
                o += [sum(q[x + r] * state[at + r * e + c] for r in range(d)) for c in range(e)]
    return o, state


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.input, self.output = self.path / 'in', self.path / 'out'

    def lattn(self, *args, **options):
        result = subprocess.run([LATTN, *map(str, args)], capture_output=True, text=True,
                                timeout=60, **options)
        # AddressSanitizer, in a build with it, has a word of its own on memory that there is not.
        result.stderr = re.sub(r'==\d+==WARNING: AddressSanitizer[^\n]*\n', '', result.stderr)
        return result

    def good(self, *args):
        result = self.lattn(*args)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        return result.stdout

    def bad(self, status, *args, says=(), **options):
        """Fails with `status` and one line that has all of `says`."""
        result = self.lattn(*args, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, r'\Alattn: [^\n]+\n\Z')
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, result.stderr)

    def near(self, got, want, limit):
        self.assertEqual(len(got), len(want))
        error = math.sqrt(sum((x - y) ** 2 for x, y in zip(got, want)) / sum(y * y for y in want))
        self.assertLessEqual(error, limit)


class Usage(Command):
    def test_bad_usage_is_status_2_and_one_line(self):
        save(self.input, problem())
        out = ['-o', self.output]
        for args, says in [
                ([], 'subcommand'),
                (['frobnicate'], 'frobnicate'),
                (['devices', 'x'], 'x'),
                (['devices', '--nonsense'], '--nonsense'),
                (['devices', '-z'], '-z'),
                (['prefill', self.input], '-o OUT'),
                (['prefill', *out], 'input file'),
                (['prefill', self.input, self.input, *out], '2 given'),
                (['prefill', self.input, '-o'], 'needs a value'),
                (['prefill', self.input, *out, '--decay', 'fast'], 'recurrence or vllm'),
                (['prefill', self.input, *out, '--precision', 'f64'], 'f32 or tf32'),
                (['prefill', self.input, *out, '--backend', 'abacus'], 'abacus'),
                (['prefill', self.input, *out, '--device', '-1'], '--device -1'),
                (['prefill', self.input, *out, '--device', '1x'], '--device 1x'),
                (['prefill', self.input, *out, '--device', '99999999999999999999'], '--device'),
                (['prefill', self.input, *out, '--json'], '--json'),
                (['decode', self.input, *out, '--decay', 'vllm'], '--decay'),
                (['bench', '--shape', '1,2,3'], '--shape'),
                (['bench', '--shape', '1,2,3,4,0'], '--shape'),
                (['bench', '--shape', '1,2,3,4,5,6'], '--shape'),
                (['bench', '--op', 'decode', '--shape', '1,1,4294967297,64,64'], '--shape'),
                (['bench', '--shape', '1,2,3,4,99999999999'], '--shape'),
                (['bench', '--dtype', 'f8'], 'bf16'),
                (['bench', '--op', 'train'], 'decode'),
                (['bench', 'x'], 'x'),
                (['bench', '--sweep', '--shape', '1,2,3,4,5'], '--sweep'),
                (['verify', '--decay', 'vllm'], '--decay'),
                (['bench', *REFERENCE, '--shape', '1,1,16,300,64'], 'd = 300'),
                (['bench', *REFERENCE, '--op', 'decode', '--shape', '1,1,9,64,64'], 'tokens = 9'),
        ]:
            with self.subTest(args=args):
                self.bad(2, *args, says=says)
        self.assertEqual(os.listdir(self.path), ['in'])

    def test_help_and_version(self):
        self.assertIn('lattn prefill', self.good('--help'))
        self.assertRegex(self.good('--version'), r'\Alattn \d+\.\d+\.\d+\n\Z')
        for name in ['devices', 'prefill', 'decode', 'verify', 'bench']:
            self.assertIn(f'usage: lattn {name}', self.good(name, '--help'))

    def test_no_such_device_is_status_1(self):
        save(self.input, problem())
        self.bad(1, 'prefill', self.input, '-o', self.output, *REFERENCE, '--device', 7,
                 says='reference')
        self.assertFalse(self.output.exists())
        self.bad(1, 'verify', *REFERENCE, '--device', 7, says='no such device')
        self.bad(1, 'bench', '--device', 1000, says='1000')

    def test_more_memory_than_there_is_is_status_1(self):
        self.bad(1, 'bench', *REFERENCE, '--shape', '10000,1000000,1000000,64,64', says='MEMORY')

    def test_arrays_that_fit_one_by_one_and_not_together_are_refused(self):
        tokens = int(0.4 * self.memory()) // (4 * 256 * 16)
        self.bad(1, 'bench', *REFERENCE, '--shape', f'1,16,{tokens},256,256', '--dtype', 'f32',
                 says='largest memory')

    def memory(self):
        return next(row['memory'] for row in json.loads(self.good('devices', '--json'))
                    if row['backend'] == 'reference')

    def test_a_call_that_breaks_a_rule_is_refused_before_it_gets_memory(self):
        for op, shape, says in [
                ('decode', '1,8,2000000000,256,256', 'tokens = 2000000000'),
                ('prefill', '2147483647,1,1,1,1', 'batch = 2147483647'),
                ('prefill', '2000000000,2000000000,2000000000,256,256', '2^63')]:
            with self.subTest(op=op, shape=shape):
                self.bad(2, 'bench', *REFERENCE, '--op', op, '--shape', shape, says=says)

    def test_a_full_standard_output_is_status_1(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full')
        with open('/dev/full', 'w') as full:
            result = subprocess.run([LATTN, 'devices'], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b'standard output', result.stderr)


class Devices(Command):
    def test_json(self):
        devices = json.loads(self.good('devices', '--json'))
        self.assertEqual([device['index'] for device in devices], list(range(len(devices))))
        for device in devices:
            self.assertEqual(set(device), {'index', 'backend', 'ordinal', 'kind', 'name', 'arch',
                                           'driver', 'memory', 'compute_units', 'usable', 'reason'})
            self.assertEqual(device['usable'], device['reason'] == '')
        self.assertEqual((devices[-1]['backend'], devices[-1]['usable']), ('reference', True))

    def test_table(self):
        lines = self.good('devices').splitlines()
        self.assertEqual(lines[0].split()[:3], ['index', 'backend', 'ordinal'])
        self.assertTrue(any('reference' in line for line in lines[1:]))


class Prefill(Command):
    def run_on(self, tensors, *options):
        save(self.input, tensors)
        self.good('prefill', self.input, '-o', self.output, *REFERENCE, *options)
        return load(self.output)

    def test_is_the_recurrence(self):
        for dtype, limit in [('F32', 2e-7), ('F16', 6e-4), ('BF16', 4e-3)]:
            tensors = problem(dtype, h=4, qk=2)
            result = self.run_on(tensors)
            o, state = recurrence(tensors, None)
            self.assertEqual(set(result), {'o', 'state'})
            self.assertEqual(result['o'][:2], (dtype, [2, 4, 5, 2]))
            self.assertEqual(result['state'][:2], ('F32', [2, 4, 3, 2]))
            self.near(result['o'][2], o, limit)
            self.near(result['state'][2], state, 2e-7)

    def test_kv_history_and_block_states(self):
        history = numbers(2 * 2 * 3 * 2, 4)
        tensors = problem(n=258, kv_history=('F32', [2, 2, 3, 2], history))
        result = self.run_on(tensors, '--block-states')
        o, state = recurrence(tensors, history)
        self.near(result['o'][2], o, 2e-7)
        self.near(result['state'][2], state, 2e-7)
        self.assertEqual(result['kv'][:2], ('F32', [2, 2, 3, 3, 2]))
        rows = [result['kv'][2][i:i + 6] for i in range(0, 2 * 2 * 3 * 6, 6)]
        self.assertEqual(sum(rows[0::3], []), history)
        self.assertEqual(sum(rows[2::3], []), result['state'][2])

    def test_a_history_of_half_floats(self):
        tensors = problem(kv_history=('F16', [2, 2, 3, 2], numbers(24, 4)))
        result = self.run_on(tensors)
        o, state = recurrence(tensors, tensors['kv_history'][2])
        self.near(result['o'][2], o, 2e-7)
        self.near(result['state'][2], state, 2e-7)

    def test_vllm_decay(self):
        history = numbers(2 * 2 * 3 * 2, 4)
        tensors = problem(n=1, kv_history=('F32', [2, 2, 3, 2], history))
        usual = self.run_on(tensors)
        vllm = self.run_on(tensors, '--decay', 'vllm')
        alone = self.run_on(problem(n=1))
        slopes = tensors['slopes'][2]
        want = [one + (both - one) * math.exp(slopes[i // 2 % 2])
                for i, (one, both) in enumerate(zip(alone['o'][2], usual['o'][2]))]
        self.near(vllm['o'][2], want, 1e-6)
        self.assertEqual(vllm['state'], usual['state'])

    def test_the_output_may_be_the_input(self):
        tensors = problem()
        save(self.input, tensors)
        self.good('prefill', self.input, '-o', self.input, *REFERENCE)
        self.near(load(self.input)['o'][2], recurrence(tensors, None)[0], 2e-7)
        self.assertEqual(os.listdir(self.path), ['in'])


class Decode(Command):
    def cache(self, dtype='F32', slots=4):
        return ('F32', [slots, 2, 3, 2], numbers(slots * 12, 5))

    def test_is_the_recurrence(self):
        for dtype, slot_type, limit in [('F32', 'I64', 2e-7), ('BF16', 'I32', 4e-3)]:
            tensors = problem(dtype, b=3, n=1, cache_in=self.cache(),
                              slot_idx=(slot_type, [3], [2, -1, 0]))
            save(self.input, tensors)
            self.good('decode', self.input, '-o', self.output, *REFERENCE)
            result = load(self.output)
            self.assertEqual(result['o'][:2], (dtype, [3, 4]))
            self.assertEqual(result['cache'][:2], ('F32', [4, 2, 3, 2]))
            pool = [tensors['cache_in'][2][i:i + 12] for i in range(0, 48, 12)]
            o, state = recurrence(tensors, pool[2] + [0.0] * 12 + pool[0])
            pool[2], pool[0] = state[:12], state[24:]
            self.near(result['o'][2], o[:4] + [0.0] * 4 + o[8:], limit)
            self.near(result['cache'][2], sum(pool, []), 2e-7)
            self.assertEqual(result['cache'][2][12:24], pool[1])

    def test_a_pool_of_half_floats(self):
        for dtype, limit in [('F16', 6e-4), ('BF16', 4e-3)]:
            tensors = problem(b=2, n=1, cache_in=(dtype, [2, 2, 3, 2], numbers(24, 5)),
                              slot_idx=('I32', [2], [0, 1]))
            save(self.input, tensors)
            self.good('decode', self.input, '-o', self.output, *REFERENCE)
            self.good('verify', self.input, *REFERENCE)
            result = load(self.output)
            o, state = recurrence(tensors, tensors['cache_in'][2])
            self.assertEqual(result['cache'][0], dtype)
            self.near(result['o'][2], o, 2e-7)
            self.near(result['cache'][2], state, limit)

    def test_one_slot_for_two_rows(self):
        save(self.input, problem(b=2, n=1, cache_in=self.cache(), slot_idx=('I32', [2], [1, 1])))
        self.bad(2, 'decode', self.input, '-o', self.output, says=[str(self.input), 'slot_idx', '1'])

    def test_one_token_only(self):
        save(self.input, problem(b=2, n=2, cache_in=self.cache(), slot_idx=('I32', [2], [0, 1])))
        self.bad(2, 'decode', self.input, '-o', self.output, says=['tensor q', '[B, h, 1, d]'])


class BadInput(Command):
    def refuse(self, tensors, *says, command='prefill'):
        save(self.input, tensors)
        self.output.write_text('precious')
        self.bad(2, command, self.input, '-o', self.output, *REFERENCE, says=[str(self.input), *says])
        self.assertEqual(self.output.read_text(), 'precious')
        self.assertEqual(sorted(os.listdir(self.path)), ['in', 'out'])

    def test_tensors(self):
        def change(**tensors):
            changed = problem() | tensors
            return {name: tensor for name, tensor in changed.items() if tensor}
        for tensors, *says in [
                (change(k=None), 'tensor k', 'missing'),
                (change(slopes=None), 'tensor slopes', 'missing'),
                (change(k=('F32', [2, 2, 5, 2], [0] * 40)), 'tensor k', '[2, 2, 5, 3]'),
                (change(v=('F32', [2, 2, 4, 2], [0] * 32)), 'tensor v', '[b, h, n, e]'),
                (change(v=('F32', [2, 3, 5, 2], [0] * 60)), 'tensor v', 'multiple'),
                (change(q=('F32', [2, 2, 15], [0] * 60)), 'tensor q', '[b, h, n, d]'),
                (change(q=('F64', [2, 2, 5, 3], [0] * 60)), 'tensor q', 'F64'),
                (change(k=('F16', [2, 2, 5, 3], [0] * 60)), 'tensor k', 'that of q'),
                (change(slopes=('F32', [3], [0] * 3)), 'tensor slopes', '[2]'),
                (change(slopes=('F16', [2], [0] * 2)), 'tensor slopes', 'F32'),
                (change(slopes=('F32', [2], [1, -1])), 'tensor slopes', '[1] = -1'),
                (change(slopes=('F32', [2], [math.nan, 1])), 'tensor slopes', '[0]'),
                (change(slopes=('F32', [2], [math.inf, 1])), 'tensor slopes', '[0]'),
                (change(kv_history=('F32', [2, 2, 2, 3], [0] * 24)), 'kv_history', '[2, 2, 3, 2]'),
                (problem(b=2 ** 31, h=1, n=0, d=1, e=1), 'tensor q', '2139095040'),
                (problem(h=0), 'tensor q', 'only b and n may be 0'),
                (problem(d=0), 'tensor q', 'only b and n may be 0'),
                (problem(b=1, h=1, n=1, d=257), 'tensor q', 'd = 257'),
                (problem(b=1, h=1, n=1, e=257), 'tensor v', 'e = 257'),
        ]:
            with self.subTest(says=says):
                self.refuse(tensors, *says)

    def test_nothing_to_do_is_done(self):
        """No tokens: the state is the history, or zero; no sequences: empty outputs."""
        history = numbers(24, 5)
        for tensors, state in [
                (problem(n=0, kv_history=('F32', [2, 2, 3, 2], history)), history),
                (problem(n=0), [0] * 24),
                (problem(b=0), []),
        ]:
            save(self.input, tensors)
            self.good('prefill', self.input, '-o', self.output, '--block-states')
            found = load(self.output)
            self.assertEqual(found['o'][2], [])
            self.assertEqual(found['state'][2], state)
            self.assertEqual(found['kv'][2], state)
        pool = numbers(36, 6)
        save(self.input, problem(b=0, n=1, slot_idx=('I64', [0], []),
                                 cache_in=('F32', [3, 2, 3, 2], pool)))
        self.good('decode', self.input, '-o', self.output)
        self.assertEqual(load(self.output)['cache'][2], pool)

    def test_decode_tensors(self):
        cache, slots = ('F32', [4, 2, 3, 2], [0] * 48), ('I64', [2], [0, 1])
        for more, *says in [
                ({'slot_idx': slots}, 'cache_in', 'missing'),
                ({'cache_in': cache}, 'slot_idx', 'missing'),
                ({'cache_in': cache, 'slot_idx': ('I64', [3], [0, 1, 2])}, 'slot_idx', '[2]'),
                ({'cache_in': cache, 'slot_idx': ('F32', [2], [0, 1])}, 'slot_idx', 'I64 or I32'),
                ({'cache_in': ('F32', [0, 2, 3, 2], []), 'slot_idx': slots}, 'cache_in', 'only b and n may be 0'),
                ({'cache_in': ('F32', [4, 2, 2, 3], [0] * 48), 'slot_idx': slots}, 'cache_in',
                 '[4, 2, 3, 2]'),
                ({'cache_in': ('I32', [4, 2, 3, 2], [0] * 48), 'slot_idx': slots}, 'cache_in', 'I32'),
        ]:
            with self.subTest(says=says):
                self.refuse(problem(n=1, **more), *says, command='decode')

    def test_a_hostile_name_stays_on_one_line(self):
        save(self.input, {'a\nb\x1b[31m': ('F32', [1], [0])})
        raw = self.input.read_bytes()
        self.input.write_bytes(raw + b'x')
        self.bad(2, 'prefill', self.input, '-o', self.output)
        self.input.write_bytes(raw[:-1])
        self.bad(2, 'prefill', self.input, '-o', self.output)

    def test_what_is_no_tensor_file(self):
        os.mkfifo(self.path / 'fifo')
        self.input.write_bytes(b'')
        for path in [self.path / 'none', self.path, self.path / 'fifo', self.input, '/dev/null']:
            for command in ['prefill', 'decode']:
                self.bad(2, command, path, '-o', self.output, says=str(path))
            self.bad(2, 'verify', path, *REFERENCE, says=str(path))
        self.assertFalse(self.output.exists())


class Output(Command):
    def test_what_cannot_be_written(self):
        save(self.input, problem())
        for path in ['/dev/null', self.path, self.path / 'no' / 'out', self.input / 'out', '']:
            self.bad(2, 'prefill', self.input, '-o', path, *REFERENCE)
        self.assertEqual(os.listdir(self.path), ['in'])

    def test_a_failed_write_leaves_the_old_file(self):
        save(self.input, problem(n=300))
        self.output.write_text('precious')
        self.bad(1, 'prefill', self.input, '-o', self.output, *REFERENCE, says=str(self.output),
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
        self.assertEqual(self.output.read_text(), 'precious')
        self.assertEqual(sorted(os.listdir(self.path)), ['in', 'out'])

    def test_an_interrupted_write_leaves_the_old_file(self):
        save(self.input, problem(b=1, h=1, n=60000, d=64, e=1))
        for delay in [0.01 * i for i in range(1, 12)]:
            self.output.write_text('precious')
            command = subprocess.Popen([LATTN, 'prefill', self.input, '-o', self.output, *REFERENCE],
                                       stderr=subprocess.DEVNULL)
            time.sleep(delay)
            command.send_signal(signal.SIGTERM)
            command.wait()
            if self.output.read_bytes() != b'precious':
                self.assertEqual(load(self.output)['o'][1], [1, 1, 60000, 1])
            self.assertEqual(sorted(os.listdir(self.path)), ['in', 'out'])

    def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(self):
        save(self.input, problem())
        for mode in [0o640, 0o604]:
            self.lattn('prefill', self.input, '-o', self.output, *REFERENCE, umask=0o027)
            self.assertEqual(self.output.stat().st_mode & 0o777, mode)
            self.output.chmod(0o604)

    def test_a_long_name(self):
        save(self.input, problem())
        self.good('prefill', self.input, '-o', self.path / ('x' * 255), *REFERENCE)


class Verify(Command):
    def test_golden_files(self):
        files = sorted(GOLDEN.glob('*.safetensors'))
        self.assertEqual(len(files), 8)
        rows = json.loads(self.good('verify', *files, *REFERENCE, '--json'))
        self.assertEqual(len(rows), 16)
        for row in rows:
            self.assertEqual(row['verdict'], 'ok')
            self.assertLessEqual(row['error_o'], row['limit_o'])
            self.assertLessEqual(row['error_state'], row['limit_state'])

    def test_a_wrong_result_fails(self):
        for name, tensor in [('p_f32_n1', 'exact_o'), ('p_f32_n1', 'exact_state'),
                             ('p_f32_n1', 'seed_kv'), ('d_f32', 'exact_cache'), ('d_f32', 'seed_o')]:
            with self.subTest(name=name, tensor=tensor):
                tensors = load(GOLDEN / f'{name}.safetensors')
                tensors[tensor][2][0] += 1
                save(self.input, tensors)
                result = self.lattn('verify', self.input, *REFERENCE)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stdout.count('FAIL'), 1)

    def test_padding_rows_are_not_compared(self):
        tensors = load(GOLDEN / 'd_f32.safetensors')
        self.assertEqual(tensors['slot_idx'][2][1], -1)
        tensors['exact_o'][2][192] = 7.0
        save(self.input, tensors)
        self.good('verify', self.input, *REFERENCE)

    def test_the_decay_rules_differ(self):
        tensors = load(GOLDEN / 'p_f32_d128_hist.safetensors')
        tensors['exact_o'], tensors['seed_o'] = tensors['seed_o'], tensors['exact_o']
        save(self.input, tensors)
        result = self.lattn('verify', self.input, *REFERENCE)
        self.assertEqual((result.returncode, result.stdout.count('FAIL')), (1, 2))

    def test_inputs_alone(self):
        save(self.input, problem('BF16', n=40))
        rows = json.loads(self.good('verify', self.input, *REFERENCE, '--json'))
        self.assertEqual([row['verdict'] for row in rows], ['ok'])
        self.assertGreater(rows[0]['error_o'], 0)

    def test_the_table_of_cases(self):
        rows = json.loads(self.good('verify', *REFERENCE, '--json'))
        self.assertGreater(len(rows), 40)
        self.assertEqual({row['op'] for row in rows}, {'prefill', 'decode'})
        self.assertEqual({row['dtype'] for row in rows}, {'f32', 'f16', 'bf16', 'tf32'})


class Bench(Command):
    def test_json(self):
        for op, shape, operations in [('prefill', (1, 2, 128, 64, 32), 2 * 64 * 96 + 4 * 64 * 32),
                                      ('decode', (4, 2, 3, 64, 32), 4 * 64 * 32)]:
            text = ','.join(map(str, shape))
            rows = json.loads(self.good('bench', *REFERENCE, '--op', op, '--shape', text, '--dtype',
                                        'f16', '--json'))
            self.assertEqual(len(rows), 1)
            row, (b, h, n, d, e) = rows[0], shape
            moved = b * h * n * 2 * (2 * d + 2 * e) + 4 * h + b * h * d * e * 4
            if op == 'decode':
                moved += b * h * d * e * 4 + 4 * b
            self.assertEqual((row['op'], row['shape'], row['dtype']), (op, text, 'f16'))
            self.assertEqual(row['bytes'], moved)
            self.assertAlmostEqual(row['gb_s'] * row['ms'] * 1e6 / moved, 1, 6)
            self.assertAlmostEqual(row['gflop_s'] * row['ms'] * 1e6 / (b * h * n * operations), 1, 6)
            self.assertAlmostEqual(row['floor_ms'] * row['copy_gb_s'] * 1e6 / moved, 1, 6)
            self.assertAlmostEqual(row['time_per_floor'] * row['floor_ms'] / row['ms'], 1, 6)
            self.assertAlmostEqual(row['ns_per_token'] * b * h * n / 1e6 / row['ms'], 1, 6)
            self.assertFalse(row['gapless'])  # the host computes
            self.assertTrue(row['plan'])

    def test_sweep(self):
        rows = json.loads(self.good('bench', *REFERENCE, '--op', 'decode', '--sweep', '--json'))
        sizes = [int(row['shape'].split(',')[0]) for row in rows]
        self.assertGreater(len(sizes), 3)
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual({row['op'] for row in rows}, {'decode'})
        self.assertGreater(rows[-1]['ms'], rows[0]['ms'])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
