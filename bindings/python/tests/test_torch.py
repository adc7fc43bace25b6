"""The torch functions on every device of torch, against a float64 recurrence."""
import threading
import time

import pytest

torch = pytest.importorskip('torch')
import lattn.torch as lattn  # noqa: E402

DEVICES = ['cpu'] + (['cuda'] if torch.cuda.is_available() else [])
LIMITS = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 4e-3}


def recurrence(q, k, v, slopes, state):
    """o [b, h, n, e] and the final state, in float64."""
    q, k, v, state = q.double(), k.double(), v.double(), state.double()
    k = k.repeat_interleave(v.shape[1] // k.shape[1], 1)
    q = q.repeat_interleave(v.shape[1] // q.shape[1], 1)
    decay = torch.exp(-slopes.double()).view(1, -1, 1, 1)
    out = []
    for t in range(q.shape[2]):
        state = decay * state + k[:, :, t, :, None] * v[:, :, t, None, :]
        out.append((q[:, :, t, None, :] @ state)[:, :, 0])
    return torch.stack(out, 2) if out else torch.zeros_like(v), state


def error(found, exact):
    return ((found.double() - exact).norm() / exact.norm()).item()


def make(device, dtype, b=2, h=4, n=300, d=64, e=64, qk_heads=None):
    qk_heads = qk_heads or h
    q = torch.randn(b, qk_heads, n, d, device=device).div(8).to(dtype)
    k = torch.randn(b, qk_heads, n, d, device=device).div(8).to(dtype)
    v = torch.randn(b, h, n, e, device=device).to(dtype)
    return q, k, v, torch.rand(h, device=device) / 4


@pytest.mark.usefixtures('way')
@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('dtype', LIMITS)
@pytest.mark.parametrize('history', [False, True])
@pytest.mark.parametrize('shape', [{}, {'n': 257, 'e': 32, 'qk_heads': 2}, {'n': 1, 'd': 128}])
def test_prefill(device, dtype, history, shape):
    q, k, v, slopes = make(device, dtype, **shape)
    b, _, n, d = q.shape
    h, e = v.shape[1], v.shape[3]
    state = torch.randn(b, h, d, e, device=device) if history else None
    before = None if state is None else state.clone()
    o, kv = lattn.lightning_attention(q, k, v, slopes, 256, state)
    exact, final = recurrence(q, k, v, slopes, torch.zeros(b, h, d, e, device=device)
                              if state is None else state)
    assert o.dtype == dtype and o.shape == (b, h, n, e)
    assert kv.dtype == torch.float32 and kv.shape == (b, h, -(-n // 256) + 1, d, e)
    assert error(o, exact) <= LIMITS[dtype]
    assert error(kv[:, :, -1], final) <= LIMITS[dtype]
    if history:
        assert torch.equal(state, before) and torch.equal(kv[:, :, 0], state)


@pytest.mark.usefixtures('way')
@pytest.mark.parametrize('device', DEVICES)
def test_views_need_no_copy(device):
    """Heads inside, and a slice of a fused buffer."""
    q, k, v, slopes = make(device, torch.float32)
    fused = torch.cat([q, k, v], 3).transpose(1, 2).contiguous().transpose(1, 2)
    parts = fused.split([64, 64, 64], 3)
    assert torch.equal(lattn.lightning_attention(*parts, slopes)[0],
                       lattn.lightning_attention(q, k, v, slopes)[0])


@pytest.mark.parametrize('device', DEVICES)
def test_vllm_rule_differs_only_across_blocks(device):
    q, k, v, slopes = make(device, torch.float32)
    ours, kv = lattn.lightning_attention(q, k, v, slopes)
    theirs, other = lattn.lightning_attention(q, k, v, slopes, decay='vllm')
    assert torch.equal(kv, other)
    assert error(theirs[:, :, :256], ours[:, :, :256].double()) < 2e-6
    assert error(theirs[:, :, 256:], ours[:, :, 256:].double()) > 1e-3


@pytest.mark.usefixtures('way')
@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('dtype', LIMITS)
@pytest.mark.parametrize('index', [torch.int32, torch.int64])
def test_decode(device, dtype, index):
    q, k, v, slopes = make(device, dtype, b=4, n=1)
    caches = torch.randn(7, 4, 64, 64, device=device)
    slots = torch.tensor([5, -1, 0, 7], dtype=index, device=device)
    before = caches.clone()
    o = lattn.linear_decode_forward(q, k, v, caches, slopes, slots)
    live = torch.tensor([0, 2], device=device)
    rows = slots[live].long()
    exact, state = recurrence(q[live], k[live], v[live], slopes, before[rows])
    assert o.shape == (4, 256) and o.dtype == dtype
    assert error(o[live], exact[:, :, 0].flatten(1)) <= LIMITS[dtype]
    assert error(caches[rows], state) <= LIMITS[dtype]
    assert not o[[1, 3]].any()
    untouched = [1, 2, 3, 4, 6]
    assert torch.equal(caches[untouched], before[untouched])


@pytest.mark.usefixtures('way')
@pytest.mark.parametrize('device', DEVICES)
def test_packed(device):
    """Prompts, decodes and an empty sequence in one call, on slots that hold NaN where unused."""
    h, d = 4, 64
    lengths = [5, 1, 0, 300, 1]
    ends = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32,
                        device=device)
    q, k, v, slopes = make(device, torch.float32, b=1, n=sum(lengths))
    caches = torch.randn(6, h, d, d, device=device)
    slots = torch.tensor([3, 0, 1, 5, 2], dtype=torch.int32, device=device)
    fresh = torch.tensor([False, True, True, False, True], device=device)
    before = caches.clone()
    caches[3] = caches[5] = float('nan')
    o = lattn.lightning_attention_packed(*(x[0].transpose(0, 1) for x in (q, k, v)), slopes, caches,
                                         ends, slots, fresh)
    at = 0
    for i, length in enumerate(lengths):
        slot = slots[i].item()
        state = before[slot:slot + 1] if fresh[i] else torch.zeros(1, h, d, d, device=device)
        part = slice(at, at + length)
        exact, final = recurrence(q[:, :, part], k[:, :, part], v[:, :, part], slopes, state)
        assert error(caches[slot:slot + 1], final) <= 2e-6
        if length:
            assert error(o[part].transpose(0, 1), exact[0]) <= 2e-6
        at += length


@pytest.mark.parametrize('device', DEVICES)
def test_states_that_lie_on_one_element(device):
    q, k, v, slopes = make(device, torch.float32, n=3, d=8, e=8)
    one = torch.ones(1, 1, 1, 1, device=device)
    found = lattn.lightning_attention(q, k, v, slopes, kv_history=one.expand(2, 4, 8, 8))
    wanted = lattn.lightning_attention(q, k, v, slopes, kv_history=torch.ones(2, 4, 8, 8, device=device))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))


def test_plain_tensors_go_the_short_way(monkeypatch):
    """Where there is one, and with slopes and states as vLLM has them."""
    if not lattn._short:
        pytest.skip('this torch has no DLPack C interface')
    monkeypatch.setattr(lattn, '_check_qkv', None)
    q, k, v, slopes = make('cpu', torch.bfloat16, n=3)
    lattn.lightning_attention(q, k, v, slopes.view(4, 1, 1), kv_history=torch.zeros(2, 4, 64, 64))
    caches = torch.zeros(3, 4, 64, 64).transpose(2, 3)
    lattn.linear_decode_forward(q[:, :, :1], k[:, :, :1], v[:, :, :1], caches, slopes,
                                torch.tensor([0, 1]))
    ends = torch.tensor([0, 1, 3], dtype=torch.int32)
    row = [x[0].transpose(0, 1) for x in (q, k, v)]
    lattn.lightning_attention_packed(*row, slopes, caches, ends, torch.tensor([2, -1]),
                                     torch.tensor([True, False]))
    with torch.inference_mode():
        lattn.lightning_attention(q, k, v, slopes)


@pytest.mark.parametrize('device', DEVICES)
def test_ops_are_well_made(device):
    """Schemas, fake kernels and tracing, as torch itself checks them."""
    q, k, v, slopes = make(device, torch.float32, n=3)
    caches = torch.randn(2, 4, 64, 64, device=device)
    slots = torch.tensor([1, 0], device=device)
    ends = torch.tensor([0, 1, 3], dtype=torch.int32, device=device)
    row = [x[0].transpose(0, 1) for x in (q, k, v)]
    ops = torch.ops.lattn
    for op, arguments in (
            (ops.prefill, (q, k, v, slopes, None, 0, 0, 1.0)),
            (ops.prefill_packed, (*row, slopes, caches, ends, slots, None, 0, 0, 0, 1.0)),
            (ops.decode, (q, k, v, caches, slopes, slots, 1.0))):
        torch.library.opcheck(op.default, arguments, test_utils=('test_schema', 'test_faketensor'))


def test_meta_tensors_have_shapes():
    q, k, v, slopes = make('meta', torch.bfloat16, n=300, e=32)
    o, kv = lattn.lightning_attention(q, k, v, slopes)
    assert o.shape == (2, 4, 300, 32) and kv.shape == (2, 4, 3, 64, 32)
    assert o.device.type == 'meta' and o.dtype == torch.bfloat16 and kv.dtype == torch.float32


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('dynamic', [False, True])
def test_compile(device, dynamic):
    """All three functions in one graph, at two lengths; the pool is updated as without it."""
    caches = torch.randn(5, 4, 64, 64, device=device)
    slots = torch.tensor([3, 1], dtype=torch.int32, device=device)
    ends = torch.tensor([0, 3, 5], dtype=torch.int32, device=device)

    def layer(q, k, v, slopes, pool):
        o = lattn.lightning_attention(q, k, v, slopes)[0] * 2
        token = lattn.linear_decode_forward(q[:, :, :1], k[:, :, :1], v[:, :, :1], pool, slopes, slots)
        packed = lattn.lightning_attention_packed(*(x[0, :, :5].transpose(0, 1) for x in (q, k, v)),
                                                  slopes, pool, ends, slots)
        return o, token + 1, packed + pool[1, :, 0].sum()

    compiled = torch.compile(layer, backend='aot_eager', fullgraph=True, dynamic=dynamic)
    for n in (300, 70):
        inputs = make(device, torch.float32, n=n)
        ours, expected = caches.clone(), caches.clone()
        for found, wanted in zip(compiled(*inputs, ours), layer(*inputs, expected)):
            assert torch.equal(found, wanted)
        assert torch.equal(ours, expected)


# ---- what only a GPU has -------------------------------------------------------------------------

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')


@gpu
def test_inductor():
    q, k, v, slopes = make('cuda', torch.bfloat16)
    layer = torch.compile(lambda q: lattn.lightning_attention(q * 2, k, v, slopes)[0] + 1, fullgraph=True)
    assert error(layer(q), (lattn.lightning_attention(q * 2, k, v, slopes)[0] + 1).double()) < 4e-3


@gpu
def test_current_stream():
    """A call comes after what its stream already has, and on no other."""
    q, k, v, slopes = make('cuda', torch.float32)
    wanted, _ = lattn.lightning_attention(q, k, v, slopes)
    late = torch.full_like(v, float('nan'))
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(100_000_000)
        late.copy_(v)
        found, _ = lattn.lightning_attention(q, k, late, slopes)
        assert not side.query(), 'the call waited'
    side.synchronize()
    assert torch.equal(found, wanted)


@gpu
def test_threads_and_streams():
    """Each thread on a stream of its own, all on one device."""
    from concurrent.futures import ThreadPoolExecutor
    q, k, v, slopes = make('cuda', torch.float32)
    wanted, _ = lattn.lightning_attention(q, k, v, slopes)

    def work(_):
        with torch.cuda.stream(torch.cuda.Stream()) as _:
            found = [lattn.lightning_attention(q, k, v, slopes)[0] for _ in range(20)]
            torch.cuda.current_stream().synchronize()
            return all(torch.equal(o, wanted) for o in found)

    torch.cuda.synchronize()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


@gpu
@pytest.mark.parametrize('first', ['default', 'capturing', None])
def test_graph(first):
    """A captured step follows what is on the device when it is replayed; wherever, if at all, it ran
    before."""
    q, k, v, slopes = make('cuda', torch.bfloat16, b=4, n=1, d=48 if first else 40)
    caches = torch.randn(9, 4, q.shape[3], 64, device='cuda')
    slots = torch.tensor([0, 1, 2, 3], device='cuda')
    start = caches.clone()
    side = torch.cuda.Stream()

    def step():
        return lattn.linear_decode_forward(q, k, v, caches, slopes, slots)

    if first:
        with torch.cuda.stream(side if first == 'capturing' else torch.cuda.current_stream()):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        o = step()
    caches.copy_(start)
    slots.copy_(torch.tensor([8, -1, 4, 6]))
    graph.replay()
    expected = start.clone()
    wanted = lattn.linear_decode_forward(q, k, v, expected, slopes, slots)
    assert torch.equal(caches, expected) and torch.equal(o, wanted)


@gpu
def test_graph_of_prefill():
    """With a workspace from torch's allocator, and lengths that change between replays."""
    h, d, n = 4, 64, 5000
    q, k, v, slopes = make('cuda', torch.bfloat16, b=1, h=h, n=n)
    q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
    caches = torch.randn(4, h, d, d, device='cuda')
    start = caches.clone()
    slots = torch.tensor([2, 0], device='cuda')
    ends = torch.tensor([0, 1, n], dtype=torch.int32, device='cuda')

    def step(pool):
        return lattn.lightning_attention_packed(q, k, v, slopes, pool, ends, slots)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step(caches)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        o = step(caches)
    caches.copy_(start)
    ends.copy_(torch.tensor([0, 3000, n]))
    graph.replay()
    expected = start.clone()
    wanted = step(expected)
    assert torch.equal(o, wanted) and torch.equal(caches, expected)


def test_threads_that_end():
    """A new thread may have the number of one that has ended, whose stream others then let go of."""
    stop, wrong = time.monotonic() + 3, []

    def decode(tokens):
        q, pool, slopes = torch.randn(1, 2, tokens, 8), torch.randn(2, 2, 8, 8), torch.rand(2)
        before = pool[1:].clone()
        o = lattn.linear_decode_forward(q, q, q, pool, slopes, torch.tensor([1]))
        return o, q, slopes, before

    def work(tokens):
        while time.monotonic() < stop:
            o, q, slopes, before = decode(tokens)
            same, _ = lattn.lightning_attention(q, q, q, slopes, kv_history=before)
            if not torch.allclose(o, same.transpose(1, 2).reshape(o.shape), atol=1e-5):
                wrong.append(o)

    threads = [threading.Thread(target=work, args=(1 + i % 3,)) for i in range(6)]
    for thread in threads:
        thread.start()
    while time.monotonic() < stop:
        ends = threading.Thread(target=decode, args=(1,))
        ends.start()
        ends.join()
    for thread in threads:
        thread.join()
    assert not wrong
