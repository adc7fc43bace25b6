"""What the torch and NumPy sides share: numbers of the C API, streams, and rules on shapes."""
import threading

from . import _lattn

BLOCK = 256
DECAYS = {'recurrence': 0, 'vllm': 1}
PRECISIONS = {'full': 0, 'tf32': 1}

_local = threading.local()
_devices = {}
_devices_lock = threading.Lock()


def device(backend, ordinal):
    """The open device, one for the process."""
    found = _devices.get((backend, ordinal))
    if found is None:
        with _devices_lock:
            found = _devices.get((backend, ordinal))
            if found is None:
                found = _devices[backend, ordinal] = _lattn.open(backend, ordinal)
    return found


def stream(backend, ordinal, native):
    """A stream, kept for each thread: the caller's own (its address), or with None a new one."""
    try:
        return _local.streams[backend, ordinal, native]
    except AttributeError:
        _local.streams = {}
    except KeyError:
        pass
    found = _local.streams[backend, ordinal, native] = device(backend, ordinal).stream(native)
    return found


def choice(name, value, choices):
    try:
        return choices[value]
    except (KeyError, TypeError):
        raise ValueError(f'{name} = {value!r}: must be one of {", ".join(map(repr, choices))}') from None


def check_shape(name, shape, expected):
    """`expected` has a number for each dimension, or None where any will do."""
    if shape == expected:
        return
    if len(shape) != len(expected) or any(e is not None and s != e for s, e in zip(shape, expected)):
        wanted = ', '.join('any' if e is None else str(e) for e in expected)
        raise ValueError(f'{name}.shape = {list(shape)}: must be [{wanted}]')


def check_heads(heads, qk_heads):
    if qk_heads == 0 or heads % qk_heads:
        raise ValueError(f'q has {qk_heads} heads, v has {heads}: the first must divide the second')


def check_scale(scale):
    """Refuses what is 0 in float32: to the C side that would mean 1."""
    if isinstance(scale, (float, int)) and abs(scale) <= 2.0 ** -150:
        raise ValueError(f'scale = {scale}: must not be 0')
