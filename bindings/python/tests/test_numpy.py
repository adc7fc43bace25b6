"""The NumPy functions on every backend of this machine."""
import numpy
import pytest

import lattn
import lattn.numpy

BACKENDS = sorted({device.backend for device in lattn.devices() if device.usable})


def recurrence(q, k, v, slopes, state):
    q, k, v, state = (x.astype('float64') for x in (q, k, v, state))
    decay = numpy.exp(-slopes.astype('float64'))[None, :, None, None]
    out = []
    for t in range(q.shape[2]):
        state = decay * state + k[:, :, t, :, None] * v[:, :, t, None, :]
        out.append((q[:, :, t, None, :] @ state)[:, :, 0])
    return numpy.stack(out, 2), state


def error(found, exact):
    return numpy.linalg.norm(found - exact) / numpy.linalg.norm(exact)


def random(*shape):
    return numpy.random.default_rng().standard_normal(shape).astype('float32')


@pytest.mark.parametrize('backend', BACKENDS)
def test_prefill(backend):
    q, k, v = random(1, 3, 300, 32) / 4, random(1, 3, 300, 32) / 4, random(1, 3, 300, 16)
    slopes, state = numpy.array([0, 0.1, 0.5], 'float32'), random(1, 3, 32, 16)
    o, kv = lattn.numpy.lightning_attention(q, k, v, slopes, kv_history=state, backend=backend)
    exact, final = recurrence(q, k, v, slopes, state)
    assert error(o, exact) <= 2e-6 and error(kv[:, :, -1], final) <= 2e-6


@pytest.mark.parametrize('backend', BACKENDS)
def test_decode(backend):
    q, k, v = (random(3, 2, 1, 16) for _ in range(3))
    slopes, caches = numpy.array([0.1, 1], 'float32'), random(5, 2, 16, 16)
    before = caches.copy()
    slots = numpy.array([4, -1, 0])
    o = lattn.numpy.linear_decode_forward(q, k, v, caches, slopes, slots, backend=backend)
    exact, state = recurrence(q[[0, 2]], k[[0, 2]], v[[0, 2]], slopes, before[[4, 0]])
    assert error(o[[0, 2]], exact[:, :, 0].reshape(2, 32)) <= 2e-6
    assert error(caches[[4, 0]], state) <= 2e-6
    assert not o[1].any() and (caches[[1, 2, 3]] == before[[1, 2, 3]]).all()


def test_errors_carry_the_message():
    x = numpy.zeros((1, 1, 1, 300), 'float32')
    with pytest.raises(lattn.Error, match='d = 300: must be 1 to 256'):
        lattn.numpy.lightning_attention(x, x, x, numpy.zeros(1, 'float32'))
    with pytest.raises(TypeError, match='q.dtype'):
        lattn.numpy.lightning_attention(x.astype('float64'), x, x, numpy.zeros(1, 'float32'))
    with pytest.raises(ValueError, match='scale = 0: must not be 0'):
        lattn.numpy.lightning_attention(x, x, x, numpy.zeros(1, 'float32'), scale=0)
    with pytest.raises(lattn.Error, match='no_such'):
        lattn.numpy.lightning_attention(x, x, x, numpy.zeros(1, 'float32'), backend='no_such')


def test_devices_end_with_the_reference():
    last = lattn.devices()[-1]
    assert last.backend == 'reference' and last.usable


class Dlpack:
    """An array that only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    q, k, v, slopes = random(1, 2, 5, 8), random(1, 2, 5, 8), random(1, 2, 5, 8), numpy.zeros(2, 'float32')
    wanted = lattn.numpy.lightning_attention(q, k, v, slopes, backend='reference')
    found = lattn.numpy.lightning_attention(*map(Dlpack, (q, k, v, slopes)), backend='reference')
    assert all((a == b).all() for a, b in zip(found, wanted))
    with pytest.raises(TypeError, match='q is a list: must be an array'):
        lattn.numpy.lightning_attention([1.0], k, v, slopes)
    with pytest.raises(TypeError, match='kv_caches must be a writable numpy.ndarray'):
        lattn.numpy.linear_decode_forward(q[:, :, :1], k[:, :, :1], v[:, :, :1],
                                          Dlpack(random(1, 2, 8, 8)), slopes, numpy.zeros(1, 'int32'))
