"""What the torch drop-in costs over the C call: python_overhead.py [DEVICE]

The smallest decode and prefill (one head, one token, d = 8), through the Python functions and through
the extension's own calls with everything computed beforehand; and what torch takes to make, and to free,
the tensors that a function returns. Processor time of the calling thread, in microseconds: the best of
short runs. Exit status 1 if what is left is more than is allowed.
"""
import sys
import time

import torch

from lattn import torch as lattn

RUNS, CALLS = 101, 200
LIMIT = 10


def microseconds(call):
    for _ in range(CALLS):
        call()
    times = []
    for _ in range(RUNS):
        start = time.thread_time_ns()
        for _ in range(CALLS):
            call()
        times.append((time.thread_time_ns() - start) / CALLS / 1e3)
        if device.type == 'cuda':
            torch.cuda.synchronize()
    return min(times)


device = torch.device(sys.argv[1] if len(sys.argv) > 1 else 'cpu')
torch.set_grad_enabled(False)
q = torch.randn(1, 1, 1, 8, device=device)
slopes = torch.ones(1, device=device)
pool = torch.zeros(1, 1, 8, 8, device=device)
slot_idx = torch.zeros(1, dtype=torch.int32, device=device)
starts = torch.tensor([0, 1], dtype=torch.int32, device=device)
o, kv = torch.empty_like(q), torch.empty(1, 1, 2, 8, 8, device=device)

raw = lattn._stream_of(q)
qkv = (q.data_ptr(), q.stride()) * 3
state = (pool.data_ptr(), 0, pool.stride(), 1, slot_idx.data_ptr(), 0)
decode = (1, 1, 1, 1, 8, 8, 0, 0, 1.0, *qkv, o.data_ptr(), o.stride(), slopes.data_ptr(), 0, state,
          None, None)
prefill = (1, 1, 0, 1, 1, 8, 8, 0, 0, 0, 1.0, *qkv, o.data_ptr(), o.stride(), slopes.data_ptr(), 0, 0,
           None, None, kv.data_ptr())
packed = (1, 1, 0, 1, 1, 8, 8, 0, 0, 0, 1.0, *((q.data_ptr(), (8, 8, 1)) * 4), slopes.data_ptr(),
          starts.data_ptr(), 0, state, state, 0)
size = max(raw.prefill(*call, 0, 0) for call in (prefill, packed))
space = torch.empty(size, dtype=torch.uint8, device=device)
row = q[0]

cases = {
    'linear_decode_forward': (
        lambda: lattn.linear_decode_forward(q, q, q, pool, slopes, slot_idx),
        lambda: raw.decode(*decode),
        lambda: q.new_empty((1, 8))),
    'lightning_attention': (
        lambda: lattn.lightning_attention(q, q, q, slopes),
        lambda: raw.prefill(*prefill, space.data_ptr(), size),
        lambda: (torch.empty_like(q), q.new_empty((1, 1, 2, 8, 8)))),
    'lightning_attention_packed': (
        lambda: lattn.lightning_attention_packed(row, row, row, slopes, pool, starts, slot_idx),
        lambda: raw.prefill(*packed, space.data_ptr(), size),
        lambda: torch.empty_like(row)),
}
print(f'torch {torch.__version__}, {device}: us of the function, of the C call, of torch making the outputs,\n'
      f'and what is left, of which {LIMIT} are allowed')
rest = []
for name, calls in cases.items():
    function, call, outputs = map(microseconds, calls)
    rest.append(function - call - outputs)
    print(f'{name:28} {function:7.2f} {call:7.2f} {outputs:7.2f} {rest[-1]:7.2f}')
sys.exit(max(rest) > LIMIT)
