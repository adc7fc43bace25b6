"""Lightning attention on host arrays: NumPy's, or any CPU array that speaks DLPack.

The arrays travel to the chosen device and back, so this is for correctness and small work. The
default is the best device of the machine; backend="reference" is the float64 reference.
"""
import numpy

from ._common import (BLOCK, DECAYS, PRECISIONS, check_heads, check_scale, check_shape, choice,
                      device, stream)

__all__ = ['lightning_attention', 'linear_decode_forward']

_DTYPES = {numpy.dtype('float32'): 0, numpy.dtype('float16'): 1}
_INDEXES = {numpy.dtype('int32'): 0, numpy.dtype('int64'): 1}


def _array(name, value, dtypes):
    if not isinstance(value, numpy.ndarray):
        if not hasattr(value, '__dlpack__'):
            raise TypeError(f'{name} is a {type(value).__name__}: must be an array')
        value = numpy.from_dlpack(value)
    if value.dtype not in dtypes:
        wanted = ', '.join(str(dtype) for dtype in dtypes)
        raise TypeError(f'{name}.dtype = {value.dtype}: must be {wanted}')
    return numpy.ascontiguousarray(value)


class _Memory:
    """Device copies of the arrays of one call."""

    def __init__(self, backend):
        self.device = device(backend, 0)
        self.stream = stream(backend, 0, None)
        self.bases = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for base in self.bases:
            self.device.free(base)

    def empty(self, size):
        base = self.device.alloc(size)
        if base:
            self.bases.append(base)
        return base or 0

    def put(self, array):
        base = self.empty(array.nbytes)
        self.stream.upload(base, array.ctypes.data, array.nbytes)
        return base

    def get(self, array, base):
        self.stream.download(array.ctypes.data, base, array.nbytes)


def _strides(array):
    return tuple(stride // array.itemsize for stride in array.strides)


def lightning_attention(q, k, v, ed, block_size=BLOCK, kv_history=None, *, decay='recurrence',
                        precision='full', scale=1.0, backend='auto'):
    """As lattn.torch.lightning_attention, on float32 or float16 arrays; returns NumPy arrays."""
    del block_size
    q = _array('q', q, _DTYPES)
    k, v = _array('k', k, (q.dtype,)), _array('v', v, (q.dtype,))
    ed = _array('ed', ed, (numpy.dtype('float32'),))
    check_shape('q', q.shape, (None,) * 4)
    b, qk_heads, n, d = q.shape
    check_shape('k', k.shape, q.shape)
    check_shape('v', v.shape, (b, None, n, None))
    h, e = v.shape[1], v.shape[3]
    check_heads(h, qk_heads)
    check_scale(scale)
    if ed.size != h:
        raise ValueError(f'ed has {ed.size} values: must have one for each of {h} heads')
    o = numpy.empty((b, h, n, e), q.dtype)
    kv = numpy.empty((b, h, -(-n // BLOCK) + 1, d, e), numpy.float32)
    with _Memory(backend) as memory:
        state = None
        if kv_history is not None:
            kv_history = _array('kv_history', kv_history, _DTYPES)
            check_shape('kv_history', kv_history.shape, (b, h, d, e))
            state = (memory.put(kv_history), _DTYPES[kv_history.dtype], _strides(kv_history), b, 0, 0)
        bases = [memory.put(array) for array in (q, k, v)]
        out, states = memory.empty(o.nbytes), memory.empty(kv.nbytes)
        call = (b, n, 0, h, qk_heads, d, e, _DTYPES[q.dtype],
                choice('precision', precision, PRECISIONS), choice('decay', decay, DECAYS), scale,
                bases[0], _strides(q), bases[1], _strides(k), bases[2], _strides(v),
                out, _strides(o), memory.put(ed), 0, 0, state, None, states)
        size = memory.stream.prefill(*call, 0, 0)
        if size:
            memory.stream.prefill(*call, memory.empty(size), size)
        memory.get(o, out)
        memory.get(kv, states)
    return o, kv


def linear_decode_forward(q, k, v, kv_caches, slope_rate, slot_idx, *, scale=1.0, backend='auto'):
    """As lattn.torch.linear_decode_forward; kv_caches must be a writable NumPy array."""
    q = _array('q', q, _DTYPES)
    k, v = _array('k', k, (q.dtype,)), _array('v', v, (q.dtype,))
    slope_rate = _array('slope_rate', slope_rate, (numpy.dtype('float32'),))
    slot_idx = _array('slot_idx', slot_idx, _INDEXES)
    if not isinstance(kv_caches, numpy.ndarray) or not kv_caches.flags.writeable:
        raise TypeError('kv_caches must be a writable numpy.ndarray: it is updated in place')
    caches = _array('kv_caches', kv_caches, _DTYPES)
    check_shape('q', q.shape, (None,) * 4)
    b, qk_heads, tokens, d = q.shape
    check_shape('k', k.shape, q.shape)
    check_shape('v', v.shape, (b, None, tokens, None))
    h, e = v.shape[1], v.shape[3]
    check_heads(h, qk_heads)
    check_scale(scale)
    check_shape('kv_caches', caches.shape, (None, h, d, e))
    check_shape('slot_idx', slot_idx.shape, (b,))
    if slope_rate.size != h:
        raise ValueError(f'slope_rate has {slope_rate.size} values: must have one for each of {h} heads')
    o = numpy.empty((b, tokens, h, e), q.dtype)
    with _Memory(backend) as memory:
        bases = [memory.put(array) for array in (q, k, v)]
        out, pool = memory.empty(o.nbytes), memory.put(caches)
        state = (pool, _DTYPES[caches.dtype], _strides(caches), caches.shape[0],
                 memory.put(slot_idx), _INDEXES[slot_idx.dtype])
        strides = _strides(o)
        memory.stream.decode(
            b, tokens, h, qk_heads, d, e, _DTYPES[q.dtype], 0, scale,
            bases[0], _strides(q), bases[1], _strides(k), bases[2], _strides(v),
            out, (strides[0], strides[2], strides[1]), memory.put(slope_rate), 0, state, None, None)
        memory.get(o, out)
        memory.get(caches, pool)
    if caches is not kv_caches:
        kv_caches[...] = caches
    return o.reshape((b, h * e) if tokens == 1 else (b, tokens, h * e))
