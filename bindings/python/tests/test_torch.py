"""The torch functions on every device of torch: against a float64 recurrence, and their errors."""
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
def test_ops_are_well_made(device):
    """Schemas, fake kernels and tracing, as torch itself checks them."""
    q, k, v, slopes = make(device, torch.float32, n=3)
    torch.library.opcheck(torch.ops.lattn.prefill.default, (q, k, v, slopes, None, 0, 0, 1.0),
                          test_utils=('test_schema', 'test_faketensor'))
    caches = torch.randn(2, 4, 64, 64, device=device)
    slots = torch.tensor([1, 0], device=device)
    torch.library.opcheck(torch.ops.lattn.decode.default, (q, k, v, caches, slopes, slots, 1.0),
                          test_utils=('test_schema', 'test_faketensor'))


def test_compile():
    q, k, v, slopes = make('cpu', torch.float32)

    @torch.compile(backend='aot_eager', fullgraph=True)
    def layer(q, k, v):
        return lattn.lightning_attention(q, k, v, slopes)[0] * 2

    assert torch.equal(layer(q, k, v), lattn.lightning_attention(q, k, v, slopes)[0] * 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason='no GPU')
def test_graph():
    """A captured decode step follows the slots that are on the device when it is replayed."""
    q, k, v, slopes = make('cuda', torch.bfloat16, b=4, n=1)
    caches = torch.randn(9, 4, 64, 64, device='cuda')
    slots = torch.tensor([0, 1, 2, 3], device='cuda')
    start = caches.clone()
    lattn.linear_decode_forward(q, k, v, caches, slopes, slots)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = lattn.linear_decode_forward(q, k, v, caches, slopes, slots)
    caches.copy_(start)
    slots.copy_(torch.tensor([8, -1, 4, 6]))
    graph.replay()
    expected = start.clone()
    wanted = lattn.linear_decode_forward(q, k, v, expected, slopes, slots)
    assert torch.equal(caches, expected) and torch.equal(o, wanted)


# name: (what to change, the exception, words of its message)
BAD = {
    'q dtype': (dict(q=torch.zeros(2, 4, 3, 8, dtype=torch.int32)), TypeError, 'q.dtype'),
    'k dtype': (dict(k=torch.zeros(2, 4, 3, 8, dtype=torch.float16)), TypeError, 'k.dtype'),
    'k shape': (dict(k=torch.zeros(2, 4, 2, 8)), ValueError, 'k.shape'),
    'v shape': (dict(v=torch.zeros(1, 4, 3, 8)), ValueError, 'v.shape'),
    'heads': (dict(v=torch.zeros(2, 6, 3, 8)), ValueError, 'heads'),
    'slopes': (dict(ed=torch.zeros(5)), ValueError, 'slopes'),
    'slopes dtype': (dict(ed=torch.zeros(4, dtype=torch.float64)), TypeError, 'slopes.dtype'),
    'history': (dict(kv_history=torch.zeros(2, 4, 8, 9)), ValueError, 'kv_history.shape'),
    'not a tensor': (dict(q=[1]), TypeError, 'q is a list'),
    'grad': (dict(q=torch.zeros(2, 4, 3, 8, requires_grad=True)), ValueError, 'requires grad'),
    'device': (dict(v=torch.zeros(2, 4, 3, 8, device='meta')), ValueError, 'v.device'),
    'decay': (dict(decay='linear'), ValueError, 'decay'),
    'large d': (dict(q=torch.zeros(2, 4, 3, 300), k=torch.zeros(2, 4, 3, 300)), lattn.Error, 'd = 300'),
}


@pytest.mark.parametrize('name', BAD)
def test_bad_arguments(name):
    changes, kind, words = BAD[name]
    arguments = dict(q=torch.zeros(2, 4, 3, 8), k=torch.zeros(2, 4, 3, 8), v=torch.zeros(2, 4, 3, 8),
                     ed=torch.zeros(4))
    with pytest.raises(kind, match=words):
        lattn.lightning_attention(**{**arguments, **changes})


@pytest.mark.parametrize('slots', [torch.zeros(2), torch.zeros(2, dtype=torch.int16)])
def test_bad_slot_types(slots):
    x = torch.zeros(2, 4, 1, 8)
    with pytest.raises(TypeError, match='slot_idx.dtype'):
        lattn.linear_decode_forward(x, x, x, torch.zeros(3, 4, 8, 8), torch.zeros(4), slots)
