"""The implementations that peers.py compares, each behind the same two methods:

    prefill(q, k, v, slopes, precision)      -> a function of no arguments that returns (o, state)
    decode(q, k, v, pool, slopes, slots)     -> the same, returning (o, pool)

q, k, v are [b, h, n, d], contiguous. What an implementation wants otherwise is made here, before the
function is returned, and so outside of what is timed. A state may be None. Nothing of the others is
part of this repository: each comes from a path that the user gives, and Absent says what is missing.
"""
import ctypes
import importlib.util
import sys
import types

import torch


class Absent(Exception):
    """This implementation cannot run here; the text says why."""


class Lattn:
    name = 'lattn'
    decay = 'recurrence'
    dtypes = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}

    def __init__(self):
        try:
            from lattn import __version__, torch as lattn
        except ImportError as error:
            raise Absent(f'{error}: build the Python package and put it on PYTHONPATH') from error
        self.version, self.stream_of = __version__, lattn._stream_of

    def refuses(self, shape):
        return ''

    def prefill(self, q, k, v, slopes, precision):
        (b, h, n, d), e = q.shape, v.shape[3]
        o = torch.empty_like(v)
        state = torch.empty(b, h, d, e, device=q.device)
        out = (state.data_ptr(), 0, state.stride(), b, 0, 0)
        call = (b, n, 0, h, h, d, e, self.dtypes[q.dtype], precision == 'tf32', 0, 1.0,
                q.data_ptr(), q.stride(), k.data_ptr(), k.stride(), v.data_ptr(), v.stride(),
                o.data_ptr(), o.stride(), slopes.data_ptr(), 0, 0, None, out, 0)
        size = self.stream_of(q).prefill(*call, 0, 0)
        space = torch.empty(max(size, 16), dtype=torch.uint8, device=q.device)

        def run(alive=(k, v, slopes)):  # the call has but their addresses
            self.stream_of(q).prefill(*call, space.data_ptr(), space.numel())
            return o, state
        return run

    def decode(self, q, k, v, pool, slopes, slots):
        b, h, _, d = q.shape
        o = torch.empty(b, h * d, dtype=q.dtype, device=q.device)
        state = (pool.data_ptr(), 0, pool.stride(), pool.shape[0], slots.data_ptr(), 0)

        def run(alive=slots):
            self.stream_of(q).decode(
                b, 1, h, h, d, d, self.dtypes[q.dtype], 0, 1.0,
                q.data_ptr(), q.stride(), k.data_ptr(), k.stride(), v.data_ptr(), v.stride(),
                o.data_ptr(), (h * d, d, h * d), slopes.data_ptr(), 0, state, None, None)
            return o, pool
        return run


class Source:
    """vLLM's lightning_attn.py, by itself: what it imports of vLLM is stood in for. vLLM gives its
    prefill float32; other inputs it takes only with slopes of their own type."""
    name = 'source'
    decay = 'vllm'

    def __init__(self, path):
        if not path:
            raise Absent('no --source, the path of lightning_attn.py of vLLM')
        try:
            import triton
            import triton.language as tl
        except ImportError as error:
            raise Absent(str(error)) from error
        stand_ins = {
            'vllm.triton_utils': {'tl': tl, 'triton': triton},
            'vllm.platforms': {'current_platform': types.SimpleNamespace(is_cuda=lambda: True)},
            'vllm.v1.attention.backends.utils': {'PAD_SLOT_ID': -1},
        }
        for name, content in stand_ins.items():
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__dict__.update(content)
        spec = importlib.util.spec_from_file_location('lightning_attn', path)
        self.module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self.module)
        except (ImportError, OSError) as error:
            raise Absent(f'{path}: {error}') from error
        self.version = f'with Triton {triton.__version__}'

    def refuses(self, shape):
        return ''

    def prefill(self, q, k, v, slopes, precision):
        slopes = slopes.to(q.dtype)

        def run():
            o, states = self.module.lightning_attention(q, k, v, slopes)
            return o, states[:, :, -1]
        return run

    def decode(self, q, k, v, pool, slopes, slots):
        def run():
            return self.module.linear_decode_forward_triton(q, k, v, pool, slopes, slots), pool
        return run


class Fla:
    """flash-linear-attention: chunk_simple_gla, which its chunk_lightning_attn calls, with our slopes;
    fused_recurrent_simple_gla for decode, on states that lie one after another (it has no slots)."""
    name = 'fla'
    decay = 'recurrence'

    def __init__(self):
        try:
            import fla
            from fla.ops.simple_gla import chunk_simple_gla, fused_recurrent_simple_gla
        except ImportError as error:
            raise Absent(f'{error}: put flash-linear-attention on PYTHONPATH') from error
        self.version, self.chunk, self.recurrent = fla.__version__, chunk_simple_gla, fused_recurrent_simple_gla
        # Its autotuner decides at the first call of a dtype, for all shapes: let that be a large one.
        for dtype in (torch.bfloat16, torch.float32):
            x = torch.randn(1, 4096, 64, 128, device='cuda', dtype=dtype)
            self.chunk(x, x, x, g_gamma=torch.full((64,), -0.01, device='cuda'), output_final_state=True)

    def refuses(self, shape):
        return ''

    def prefill(self, q, k, v, slopes, precision):
        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        gamma = -slopes

        def run():
            o, state = self.chunk(q, k, v, g_gamma=gamma, scale=1.0, output_final_state=True)
            return o.transpose(1, 2), state
        return run

    def decode(self, q, k, v, pool, slopes, slots):
        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        gamma, first = -slopes, int(slots.min())
        states = pool[first:first + q.shape[0]]

        def run():
            o, state = self.recurrent(q, k, v, g_gamma=gamma, scale=1.0, initial_state=states,
                                      output_final_state=True)
            return o.reshape(q.shape[0], -1), state
        return run


class FlaFused(Fla):
    """fused_chunk_simple_gla: one kernel, of which the autotuner asks anew for every number of heads
    and head size, which takes too long for the sweep."""
    name = 'fla fused'

    def __init__(self):
        super().__init__()
        from fla.ops.simple_gla import fused_chunk_simple_gla
        self.version, self.chunk = '', fused_chunk_simple_gla

    def refuses(self, shape):
        return 'prefill of the table only' if shape.op == 'decode' or shape.part == 'sweep' else ''


class Kittens:
    """ThunderKittens' linear_attention, in a shared library that the user has built around it:

        int linear_attention(void *q, void *k, void *v, void *o, float *slopes, size_t b, size_t h,
                             size_t n, cudaStream_t stream);

    for bfloat16 and d = e = 128. The kernel adds to o, so the function clears it first. 0: launched."""
    name = 'kittens'
    decay = 'recurrence'

    def __init__(self, path):
        if not path:
            raise Absent('no --kittens, a shared library around its kernel (see peer_kernels.py)')
        try:
            self.call = ctypes.CDLL(path).linear_attention
        except (OSError, AttributeError) as error:
            raise Absent(str(error)) from error
        self.call.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_size_t] * 3 + [ctypes.c_void_p]
        self.version = ''

    def refuses(self, shape):
        if shape.dtype != 'bf16' or shape.d != 128 or shape.op != 'prefill':
            return 'bfloat16 prefill of d = e = 128 only'
        return 'whole chunks of 64 only' if shape.n % 64 else ''

    def prefill(self, q, k, v, slopes, precision):
        (b, h, n, _), o = q.shape, torch.empty_like(v)

        def run():
            stream = torch.cuda.current_stream().cuda_stream
            failed = self.call(q.data_ptr(), k.data_ptr(), v.data_ptr(), o.data_ptr(), slopes.data_ptr(),
                               b, h, n, stream)
            if failed:
                raise RuntimeError(f'ThunderKittens: CUDA error {failed}')
            return o, None
        return run


def find(options):
    """Those that are wanted and here, ours first, and words for each that is not here."""
    makers = {'lattn': Lattn, 'source': lambda: Source(options.source), 'fla': Fla, 'fla fused': FlaFused,
              'kittens': lambda: Kittens(options.kittens)}
    found, missing = [], []
    for name, make in makers.items():
        if name.split()[0] not in options.only.split(','):
            continue
        try:
            found.append(make())
        except Absent as reason:
            missing.append(f'{name} ({reason})')
    return found, missing
