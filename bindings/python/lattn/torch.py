"""Lightning attention on torch tensors, with the argument order of vLLM's Triton functions.

CUDA and ROCm tensors run on the current stream, and can be captured into graphs; CPU tensors run on
the float64 reference, which is slow. Every function is a torch custom op (torch.ops.lattn.*) with a
fake kernel, so that torch.compile traces it. None has a backward pass.
"""
import torch

from . import _lattn
from ._common import BLOCK, DECAYS, PRECISIONS, check_heads, check_scale, check_shape, choice
from ._common import stream as _stream
from ._lattn import Error

__all__ = ['Error', 'lightning_attention', 'linear_decode_forward', 'lightning_attention_packed']

_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_INDEXES = {torch.int32: 0, torch.int64: 1}
_GPU = 'hip' if torch.version.hip else 'cuda'
_raw_stream = getattr(torch._C, '_cuda_getCurrentRawStream', None)


# ---- rules on tensors ----------------------------------------------------------------------------

def _check(name, tensor, device, dtypes):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f'{name} is a {type(tensor).__name__}: must be a torch.Tensor')
    if tensor.device != device:
        raise ValueError(f'{name}.device = {tensor.device}: must be {device}, as q')
    if tensor.dtype not in dtypes:
        wanted = ', '.join(str(dtype) for dtype in dtypes)
        raise TypeError(f'{name}.dtype = {tensor.dtype}: must be {wanted}')
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(f'{name} requires grad: there is no backward pass; use torch.no_grad()')


def _check_qkv(q, k, v):
    """Also returns the device that all tensors must be on."""
    if not isinstance(q, torch.Tensor):
        raise TypeError(f'q is a {type(q).__name__}: must be a torch.Tensor')
    device, dtypes = q.device, (q.dtype,)
    if device.type not in ('cuda', 'cpu', 'meta'):
        raise ValueError(f'q.device = {device}: must be a CUDA, ROCm, CPU or meta device')
    _check('q', q, device, _DTYPES)
    _check('k', k, device, dtypes)
    _check('v', v, device, dtypes)
    return device


def _check_slopes(slopes, device, heads):
    _check('slopes', slopes, device, (torch.float32,))
    if slopes.numel() != heads:
        raise ValueError(f'slopes has {slopes.numel()} values: must have one for each of {heads} heads')


def _check_scale(scale):
    if not isinstance(scale, (float, int, torch.SymFloat)):
        raise TypeError(f'scale is a {type(scale).__name__}: must be a number')
    check_scale(scale)


# ---- from tensors to the C side ------------------------------------------------------------------

def _stream_of(tensor):
    device = tensor.device
    if device.type == 'cpu':
        return _stream('reference', 0, None)
    index = device.index
    native = _raw_stream(index) if _raw_stream else torch.cuda.current_stream(index).cuda_stream
    return _stream(_GPU, index, native)


def _torch_stream(*gpu):
    """For the short way: of a GPU's number and stream, or of the CPU."""
    return _stream(_GPU, *gpu) if gpu else _stream('reference', 0, None)


def _inner(tensor):
    """The tensor with its last dimension adjacent and at least one stride that is not zero."""
    strides = tensor.stride()
    if (strides[-1] == 1 or tensor.shape[-1] == 1) and (strides[0] or any(strides[1:-1])):
        return tensor
    return tensor.contiguous()


def _pool(name, tensor, indexes):
    if not any(tensor.stride()) and tensor.numel() > 1:  # to the C side: contiguous
        raise ValueError(f'{name}.stride() is 0 in every dimension: its states overlap')
    return (tensor.data_ptr(), _DTYPES[tensor.dtype], tensor.stride(), tensor.shape[0],
            0 if indexes is None else indexes.data_ptr(),
            0 if indexes is None else _INDEXES[indexes.dtype])


def _run_prefill(q, call):
    """Runs stream.prefill(*call, workspace, size), with a workspace where it needs one."""
    stream = _stream_of(q)
    size = stream.prefill(*call, 0, 0)
    if size:
        workspace = torch.empty(size, dtype=torch.uint8, device=q.device)
        stream.prefill(*call, workspace.data_ptr(), size)


# ---- the ops -------------------------------------------------------------------------------------

_library = torch.library.Library('lattn', 'DEF')
_library.define('prefill(Tensor q, Tensor k, Tensor v, Tensor slopes, Tensor? kv_history, int decay, '
                'int precision, float scale) -> (Tensor, Tensor)')
_library.define('prefill_packed(Tensor q, Tensor k, Tensor v, Tensor slopes, Tensor(a!) kv_caches, '
                'Tensor cu_seqlens, Tensor slot_idx, Tensor? has_initial, int max_tokens, int decay, '
                'int precision, float scale) -> Tensor')
_library.define('decode(Tensor q, Tensor k, Tensor v, Tensor(a!) kv_caches, Tensor slopes, '
                'Tensor slot_idx, float scale) -> Tensor')


def _prefill(q, k, v, slopes, kv_history, decay, precision, scale):
    q, k, v = _inner(q), _inner(k), _inner(v)
    b, qk_heads, n, d = q.shape
    h, e = v.shape[1], v.shape[3]
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    kv = q.new_empty((b, h, -(-n // BLOCK) + 1, d, e), dtype=torch.float32)
    if kv_history is not None and not any(kv_history.stride()):
        kv_history = kv_history.contiguous()
    state_in = None if kv_history is None else _pool('kv_history', kv_history, None)
    _run_prefill(q, (
        b, n, 0, h, qk_heads, d, e, _DTYPES[q.dtype], precision, decay, scale,
        q.data_ptr(), q.stride(), k.data_ptr(), k.stride(), v.data_ptr(), v.stride(),
        o.data_ptr(), o.stride(), slopes.data_ptr(), 0, 0, state_in, None, kv.data_ptr()))
    return o, kv


def _prefill_fake(q, k, v, slopes, kv_history, decay, precision, scale):
    b, _, n, d = q.shape
    h, e = v.shape[1], v.shape[3]
    return (q.new_empty((b, h, n, e)),
            q.new_empty((b, h, (n + BLOCK - 1) // BLOCK + 1, d, e), dtype=torch.float32))


def _prefill_packed(q, k, v, slopes, kv_caches, cu_seqlens, slot_idx, has_initial, max_tokens, decay,
                    precision, scale):
    q, k, v = _inner(q), _inner(k), _inner(v)
    n, qk_heads, d = q.shape
    h, e = v.shape[1], v.shape[2]
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    pool = _pool('kv_caches', kv_caches, slot_idx)
    _run_prefill(q, (
        slot_idx.shape[0], n, max_tokens, h, qk_heads, d, e, _DTYPES[q.dtype], precision, decay, scale,
        q.data_ptr(), q.stride(), k.data_ptr(), k.stride(), v.data_ptr(), v.stride(),
        o.data_ptr(), o.stride(), slopes.data_ptr(), cu_seqlens.data_ptr(),
        0 if has_initial is None else has_initial.data_ptr(), pool, pool, 0))
    return o


def _prefill_packed_fake(q, k, v, slopes, kv_caches, cu_seqlens, slot_idx, has_initial, max_tokens,
                         decay, precision, scale):
    return q.new_empty(v.shape)


def _decode(q, k, v, kv_caches, slopes, slot_idx, scale):
    q, k, v = _inner(q), _inner(k), _inner(v)
    b, qk_heads, tokens, d = q.shape
    h, e = v.shape[1], v.shape[3]
    width = h * e
    o = q.new_empty((b, width) if tokens == 1 else (b, tokens, width))
    _stream_of(q).decode(
        b, tokens, h, qk_heads, d, e, _DTYPES[q.dtype], 0, scale,
        q.data_ptr(), q.stride(), k.data_ptr(), k.stride(), v.data_ptr(), v.stride(),
        o.data_ptr(), (tokens * width, e, width), slopes.data_ptr(), 0,
        _pool('kv_caches', kv_caches, slot_idx), None, None)
    return o


def _decode_fake(q, k, v, kv_caches, slopes, slot_idx, scale):
    b, _, tokens, _ = q.shape
    width = v.shape[1] * v.shape[3]
    return q.new_empty((b, width) if tokens == 1 else (b, tokens, width))


for _name, _real, _fake in (('prefill', _prefill, _prefill_fake),
                            ('prefill_packed', _prefill_packed, _prefill_packed_fake),
                            ('decode', _decode, _decode_fake)):
    for _key in ('CUDA', 'CPU'):
        _library.impl(_name, _real, _key)
    torch.library.register_fake(f'lattn::{_name}', _fake, lib=_library)
_ops = torch.ops.lattn

# Where torch has DLPack's C interface (from 2.10 on), plain tensors go to the C side without the
# dispatcher. _lattn.prefill and the like return None for what is not plain, or not right.
_is_compiling = torch.compiler.is_compiling
_short = hasattr(torch.Tensor, '__dlpack_c_exchange_api__') and _lattn.use_tensors(
    torch.Tensor.__dlpack_c_exchange_api__, torch.Tensor, torch._C._len_torch_dispatch_stack,
    torch._C._is_tracing, torch.is_grad_enabled, _torch_stream, torch.empty_like, torch.float32)


# ---- the functions -------------------------------------------------------------------------------

def lightning_attention(q, k, v, ed, block_size=BLOCK, kv_history=None, *, decay='recurrence',
                        precision='full', scale=1.0):
    """Prefill of q [b, h, n, d], k, v [b, h, n, e] with decay rates ed (h values, any shape).

    Returns o [b, h, n, e] and the states [b, h, ceil(n / 256) + 1, d, e], float32: the one before
    each block of 256 tokens and then the final one. kv_history [b, h, d, e] is the initial state,
    and is not changed. block_size is taken for the source's sake; like there, it changes nothing.
    q and k may have fewer heads than v. decay="vllm" reproduces the source's weights.
    """
    del block_size
    decay, precision = choice('decay', decay, DECAYS), choice('precision', precision, PRECISIONS)
    if _short and not _is_compiling():
        found = _lattn.prefill(q, k, v, ed, kv_history, decay, precision, scale)
        if found is not None:
            return found
    device = _check_qkv(q, k, v)
    if q.dim() != 4 or v.dim() != 4:
        raise ValueError(f'q.shape = {list(q.shape)}, v.shape = {list(v.shape)}: must be [b, h, n, dim]')
    b, qk_heads, n, d = q.shape
    v_b, h, v_n, e = v.shape
    check_shape('k', k.shape, (b, qk_heads, n, d))
    if v_b != b or v_n != n:
        check_shape('v', v.shape, (b, None, n, None))
    check_heads(h, qk_heads)
    _check_slopes(ed, device, h)
    _check_scale(scale)
    if kv_history is not None:
        _check('kv_history', kv_history, device, _DTYPES)
        check_shape('kv_history', kv_history.shape, (b, h, d, e))
    return _ops.prefill.default(q, k, v, ed.contiguous(), kv_history, decay, precision, scale)


def linear_decode_forward(q, k, v, kv_caches, slope_rate, slot_idx, *, scale=1.0):
    """Decode of q [B, h, t, d], k, v [B, h, t, e], 1 to 8 tokens t, on slots of kv_caches.

    kv_caches [slots, h, d, e], any strides, is updated in place; rows whose slot_idx (int32 or
    int64) is outside it are padding: their outputs are zero. Returns [B, h * e], or with several
    tokens [B, t, h * e].
    """
    if _short and not _is_compiling():
        o = _lattn.decode(q, k, v, kv_caches, slope_rate, slot_idx, scale)
        if o is not None:
            return o
    device = _check_qkv(q, k, v)
    if q.dim() != 4 or v.dim() != 4:
        raise ValueError(f'q.shape = {list(q.shape)}, v.shape = {list(v.shape)}: must be [B, h, t, dim]')
    b, qk_heads, tokens, d = q.shape
    v_b, h, v_tokens, e = v.shape
    check_shape('k', k.shape, (b, qk_heads, tokens, d))
    if v_b != b or v_tokens != tokens:
        check_shape('v', v.shape, (b, None, tokens, None))
    check_heads(h, qk_heads)
    if not 1 <= tokens <= 8:
        raise ValueError(f'q.shape = {list(q.shape)}: must have 1 to 8 tokens')
    _check('kv_caches', kv_caches, device, _DTYPES)
    if kv_caches.shape[1:] != (h, d, e):
        check_shape('kv_caches', kv_caches.shape, (None, h, d, e))
    _check_slopes(slope_rate, device, h)
    _check('slot_idx', slot_idx, device, _INDEXES)
    check_shape('slot_idx', slot_idx.shape, (b,))
    _check_scale(scale)
    return _ops.decode.default(q, k, v, kv_caches, slope_rate.contiguous(),
                               slot_idx.contiguous(), scale)


def lightning_attention_packed(q, k, v, ed, kv_caches, query_start_loc, state_indices,
                               has_initial_state=None, *, max_query_len=0, decay='recurrence',
                               precision='full', scale=1.0):
    """One step of a batch: q, k [n, h, d], v [n, h, e] hold sequences one after another.

    Sequence i is tokens query_start_loc[i] to query_start_loc[i + 1] (int32), prefill or decode
    alike; its state is row state_indices[i] of kv_caches [slots, h, d, e], read if
    has_initial_state[i] (bool; None: all) and updated in place. Returns o [n, h, e].
    """
    decay, precision = choice('decay', decay, DECAYS), choice('precision', precision, PRECISIONS)
    if _short and not _is_compiling():
        o = _lattn.prefill_packed(q, k, v, ed, kv_caches, query_start_loc, state_indices,
                                  has_initial_state, max_query_len, decay, precision, scale)
        if o is not None:
            return o
    device = _check_qkv(q, k, v)
    if q.dim() != 3 or v.dim() != 3:
        raise ValueError(f'q.shape = {list(q.shape)}, v.shape = {list(v.shape)}: must be [n, h, dim]')
    n, qk_heads, d = q.shape
    v_n, h, e = v.shape
    check_shape('k', k.shape, (n, qk_heads, d))
    if v_n != n:
        check_shape('v', v.shape, (n, None, None))
    check_heads(h, qk_heads)
    _check('kv_caches', kv_caches, device, _DTYPES)
    if kv_caches.shape[1:] != (h, d, e):
        check_shape('kv_caches', kv_caches.shape, (None, h, d, e))
    _check_slopes(ed, device, h)
    _check('query_start_loc', query_start_loc, device, (torch.int32,))
    _check('state_indices', state_indices, device, _INDEXES)
    if state_indices.dim() != 1:
        check_shape('state_indices', state_indices.shape, (None,))
    check_shape('query_start_loc', query_start_loc.shape, (state_indices.shape[0] + 1,))
    if kv_caches.shape[0] == 0 and state_indices.shape[0]:  # to the C side: no states
        raise ValueError('kv_caches has no rows: every sequence needs one')
    if has_initial_state is not None:
        _check('has_initial_state', has_initial_state, device, (torch.bool, torch.uint8))
        check_shape('has_initial_state', has_initial_state.shape, state_indices.shape)
        has_initial_state = has_initial_state.contiguous()
    if not isinstance(max_query_len, (int, torch.SymInt)):
        raise TypeError(f'max_query_len is a {type(max_query_len).__name__}: must be an int')
    _check_scale(scale)
    return _ops.prefill_packed.default(
        q, k, v, ed.contiguous(), kv_caches, query_start_loc.contiguous(),
        state_indices.contiguous(), has_initial_state, max_query_len, decay, precision, scale)
