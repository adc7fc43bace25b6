#!/usr/bin/env python3
"""Runs other projects' tests of these functions on lattn.torch.

    public_tests.py [--device cpu|cuda] FILE... [-- PYTEST-ARGUMENT...]

FILE is a test file of vLLM, vllm-ascend, SGLang or DLBlas as it is in their repositories (the last in a
checkout, where its reference is); none of it is here. What it imports from its project is replaced by
lattn.torch, its devices by --device (cuda where there is one), and its tolerances by ours: a comparison
passes if the relative L2 error is at most 2e-6, 6e-4 or 4e-3 for inputs of float32, float16 or
bfloat16. Comparisons for equality stay.
"""
import argparse
import functools
import importlib.util
import os
import pathlib
import sys
import types

import pytest
import torch
from torch.overrides import TorchFunctionMode

from lattn import torch as lattn

LIMITS = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 4e-3}


# ---- what the tests import -----------------------------------------------------------------------

class Inputs:
    """The dtype of the inputs of the last call, which sets the limit of what is compared next."""
    dtype = torch.float32


def prefill(decay):
    """vLLM's prefill in one of the two rules (docs/from-triton.md): each test's own reference says
    which."""
    def lightning_attention(q, k, v, ed, block_size=256, kv_history=None):
        Inputs.dtype = q.dtype
        return lattn.lightning_attention(q, k, v, ed, block_size, kv_history, decay=decay)
    return lightning_attention


def linear_decode_forward_triton(q, k, v, kv_caches, slope_rate, slot_idx, BLOCK_SIZE=32):
    Inputs.dtype = q.dtype
    return lattn.linear_decode_forward(q, k, v, kv_caches, slope_rate, slot_idx)


def sgl_decode(q, k, v, past_kv, slope, output, new_kv):
    """SGLang's: from one array of states to another."""
    new_kv.copy_(past_kv)
    slots = torch.arange(q.shape[0], device=q.device)
    o = linear_decode_forward_triton(q, k, v, new_kv, slope, slots)
    output.copy_(o.view(output.shape))


def ascend_attention(q, k, v, s, kv_history):
    return prefill('vllm')(q, k, v, s, 256, kv_history)


class AscendKernel:
    @staticmethod
    def jit_linear_forward_prefix(q, k, v, kv_caches, slope_rate, block_size, layer_idx=None, **_):
        """vllm-ascend's of one sequence: [h, n, d] to [n, h * e], the cache updated in place."""
        q, k, v = (x.unsqueeze(0) if x.dim() == 3 else x for x in (q, k, v))
        history = kv_caches.reshape(1, v.shape[1], q.shape[3], v.shape[3])
        o, states = prefill('vllm')(q, k, v, slope_rate.float(), block_size, history)
        kv_caches.copy_(states[:, :, -1].reshape_as(kv_caches))
        return o[0].transpose(0, 1).flatten(1)


def seed(value):
    torch.manual_seed(value)


def nothing(*_, **__):
    pass


MODULES = {
    'vllm.model_executor.layers.lightning_attn': {
        'lightning_attention': prefill('recurrence'),
        'linear_decode_forward_triton': linear_decode_forward_triton},
    'vllm.platforms': {
        'current_platform': types.SimpleNamespace(seed_everything=seed, manual_seed_all=seed)},
    'vllm.utils.torch_utils': {'set_random_seed': seed},
    'sgl_kernel': {'lightning_attention_decode': sgl_decode},
    'vllm_ascend.ops.triton.mamba.lightning_attn': {
        'lightning_attention_npu': prefill('vllm'), 'lightning_attention_npu_': ascend_attention,
        'AscendLightningAttentionKernel': AscendKernel},
    'vllm_ascend.ops.triton.triton_utils': {'init_device_properties_triton': nothing},
    'torch_npu': {},
    # The one pattern that the tests use.
    'einops': {'rearrange': lambda x, pattern: {
        'h n d -> n (h d)': lambda: x.transpose(0, 1).flatten(1)}[pattern]()},
}


def dlblas_decode(q, k, v, past_key_value, slope_rate, BLOCK_SIZE):
    """DLBlas's: one state a sequence, updated in place. Its tests compare with its torch functions,
    which follow the published model."""
    slots = torch.arange(q.shape[0], device=q.device)
    o = linear_decode_forward_triton(q, k, v, past_key_value, slope_rate, slots)
    return o.view(v.shape), past_key_value


def dlblas_prefill(q, k, v, past_key_value, slope_rate, BLOCK_SIZE):
    o, states = prefill('recurrence')(q, k, v, slope_rate, BLOCK_SIZE, past_key_value)
    past_key_value.copy_(states[:, :, -1])
    return o, past_key_value


def dlblas_modules(file, device):
    """The modules of the checkout that the test file is of, with our functions for its kernels."""
    path = pathlib.Path(file).resolve().parents[2] / 'dlblas' / 'kernels' / 'lightning_attn.py'
    if not path.exists():
        return {}
    name = 'dlblas.kernels.lightning_attn'
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.lightning_attention_prefill_forward_triton_loop = dlblas_prefill
    module.lightning_attention_decode_forward_triton = dlblas_decode
    return {name: vars(module), 'dlblas.utils.device_utils': {'infer_device': lambda: device}}


def install(modules):
    for name, members in modules.items():
        parts = name.split('.')
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault('.'.join(parts[:i]), types.ModuleType('.'.join(parts[:i])))
        for i in range(1, len(parts)):
            setattr(sys.modules['.'.join(parts[:i])], parts[i], sys.modules['.'.join(parts[:i + 1])])
        vars(sys.modules[name]).update(members)
    torch.npu = types.SimpleNamespace(empty_cache=nothing, reset_peak_memory_stats=nothing)


# ---- what their references lack ------------------------------------------------------------------
# vLLM's tolerances, 0.1 and more where values are near 1e-4, hide that two of its references do not
# say what its kernels do.

def by_slot(reference):
    """It reads and writes state b for sequence b, where the kernel takes row slot_idx[b]."""
    @functools.wraps(reference)
    def corrected(q, k, v, kv_caches, slope_rate, slot_idx):
        live = slot_idx >= 0
        rows = kv_caches[slot_idx.clamp(min=0)]
        output = reference(q, k, v, rows, slope_rate, slot_idx)
        kv_caches[slot_idx[live]] = rows[live]
        return output
    return corrected


def state_before(reference):
    """It returns the final state twice, where the kernel returns the initial state and the final."""
    @functools.wraps(reference)
    def corrected(q, k, v, ed, block_size, kv_history):
        output, states = reference(q, k, v, ed, block_size, kv_history)
        states[:, :, 0] = 0 if kv_history is None else kv_history
        return output, states
    return corrected


CORRECTIONS = {'reference_linear_decode': by_slot, 'reference_lightning_attention': state_before}


# ---- devices and tolerances ----------------------------------------------------------------------

class Devices(TorchFunctionMode):
    """Every call of torch that names an accelerator gets `device` instead."""

    def __init__(self, device):
        super().__init__()
        self.device = device

    def of(self, value):
        if isinstance(value, (str, torch.device)) and str(value).split(':')[0] in ('cuda', 'npu'):
            return self.device
        return value

    def __torch_function__(self, function, types_, args=(), kwargs=None):
        kwargs = {name: self.of(value) for name, value in (kwargs or {}).items()}
        return function(*map(self.of, args), **kwargs)


class Judge:
    """Stands in for torch.testing.assert_close and torch.allclose."""

    def __init__(self):
        self.equal, self.allclose = torch.testing.assert_close, torch.allclose
        self.comparisons, self.worst = 0, 0.0

    def error(self, actual, expected):
        """The relative L2 error, as a part of what is allowed."""
        actual, expected = actual.double(), expected.double()
        norm = expected.norm().item()
        error = (actual - expected).norm().item()
        return error / (norm or 1) / LIMITS[Inputs.dtype]

    def assert_close(self, actual, expected, rtol=None, atol=None, **_):
        if rtol == 0 and atol == 0:
            self.comparisons += 1
            return self.equal(actual, expected, rtol=0, atol=0)
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        part = self.error(actual, expected)
        self.comparisons += 1
        self.worst = max(self.worst, part)
        assert part <= 1, f'error {part * LIMITS[Inputs.dtype]:.2e}: must be {LIMITS[Inputs.dtype]}'

    def close(self, actual, expected, rtol=None, atol=None, **_):
        self.comparisons += 1
        return self.error(actual, expected) <= 1


class Plugin:
    def __init__(self, device):
        self.device, self.judge = device, Judge()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection(self):
        """Tests that ask for CUDA, which is what `device` stands for, are not to be skipped."""
        asked, torch.cuda.is_available = torch.cuda.is_available, lambda: True
        yield
        torch.cuda.is_available = asked

    def pytest_collection_modifyitems(self, items):
        for module in {item.module for item in items}:
            for name, correct in CORRECTIONS.items():
                if hasattr(module, name):
                    setattr(module, name, correct(getattr(module, name)))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        modes, default = Devices(self.device), torch.set_default_device
        torch.testing.assert_close, torch.allclose = self.judge.assert_close, self.judge.close
        torch.set_default_device = lambda device: default(modes.of(device))
        with modes:
            yield
        torch.testing.assert_close, torch.allclose = self.judge.equal, self.judge.allclose
        torch.set_default_device = default
        default(None)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(
            f'{self.device}: {self.judge.comparisons} comparisons, '
            f'the largest error {self.judge.worst:.2f} of what we allow')

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus == 0 and not self.judge.comparisons:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def main():
    arguments = sys.argv[1:]
    rest = arguments[arguments.index('--') + 1:] if '--' in arguments else []
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--device', choices=('cpu', 'cuda'),
                        default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument('files', nargs='+')
    options = parser.parse_args(arguments[:len(arguments) - len(rest) - bool(rest)])
    install(MODULES)
    for file in options.files:
        install(dlblas_modules(file, options.device))
    # Their projects' own pytest settings and conftest files stay out.
    flags = ['-q', '-p', 'no:cacheprovider', '-c', os.devnull, '--noconftest', '--import-mode=importlib']
    return pytest.main([*flags, *options.files, *rest], plugins=[Plugin(options.device)])


if __name__ == '__main__':
    sys.exit(main())
