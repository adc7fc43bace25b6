"""Lightning attention on every device: lattn.torch for tensors, lattn.numpy for host arrays.

The C library is inside the package. `devices()` lists what this machine has.
"""
from typing import NamedTuple

from ._lattn import Error, version as __version__
from . import _lattn

__all__ = ['Device', 'Error', 'devices', '__version__']


class Device(NamedTuple):
    backend: str
    ordinal: int
    kind: str
    name: str
    arch: str
    driver: str
    memory: int
    usable: bool
    reason: str


def devices():
    """Every device of every backend, best first; the float64 reference is the last."""
    return [Device(*row) for row in _lattn.devices()]
