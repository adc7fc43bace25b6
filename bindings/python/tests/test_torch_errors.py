"""What the torch functions refuse, with which exception and words, on every device of torch."""
import pytest

torch = pytest.importorskip('torch')
import lattn.torch as lattn  # noqa: E402

DEVICES = ['cpu'] + (['cuda'] if torch.cuda.is_available() else [])


def prefill(device):
    x = torch.zeros(2, 4, 3, 8, device=device)
    return lattn.lightning_attention, dict(q=x, k=x, v=x, ed=torch.zeros(4, device=device),
                                           kv_history=torch.zeros(2, 4, 8, 8, device=device))


def decode(device):
    x = torch.zeros(2, 4, 1, 8, device=device)
    return lattn.linear_decode_forward, dict(
        q=x, k=x, v=x, kv_caches=torch.zeros(3, 4, 8, 8, device=device),
        slope_rate=torch.zeros(4, device=device), slot_idx=torch.tensor([0, 1], device=device))


def packed(device):
    x = torch.zeros(5, 4, 8, device=device)
    return lattn.lightning_attention_packed, dict(
        q=x, k=x, v=x, ed=torch.zeros(4, device=device),
        kv_caches=torch.zeros(3, 4, 8, 8, device=device),
        query_start_loc=torch.tensor([0, 2, 5], dtype=torch.int32, device=device),
        state_indices=torch.tensor([0, 1], device=device),
        has_initial_state=torch.tensor([True, False], device=device))


def zeros(*shape, **how):
    return lambda device: torch.zeros(*shape, **{'device': device, **how})


def elsewhere(*shape):
    """On another device than the rest: not even one of the same type is taken for it."""
    return lambda device: torch.zeros(*shape, device='cpu' if device == 'cuda' else 'meta')


I32, F64, I16 = torch.int32, torch.float64, torch.int16
# function, argument, what it becomes, the exception, words of its message
BAD = [
    (prefill, 'q', [1], TypeError, 'q is a list: must be a torch.Tensor'),
    (prefill, 'ed', 0.5, TypeError, 'slopes is a float: must be a torch.Tensor'),
    (prefill, 'q', zeros(2, 4, 3, 8, dtype=I32), TypeError, 'q.dtype = torch.int32: must be torch.float32'),
    (prefill, 'q', zeros(2, 4, 3, 8, dtype=F64), TypeError, 'q.dtype = torch.float64'),
    (prefill, 'k', zeros(2, 4, 3, 8, dtype=torch.float16), TypeError,
     'k.dtype = torch.float16: must be torch.float32'),
    (prefill, 'ed', zeros(4, dtype=F64), TypeError, 'slopes.dtype'),
    (prefill, 'kv_history', zeros(2, 4, 8, 8, dtype=F64), TypeError, 'kv_history.dtype'),
    (prefill, 'q', zeros(4, 3, 8), ValueError, r'q.shape = \[4, 3, 8\].*must be \[b, h, n, dim\]'),
    (prefill, 'k', zeros(2, 4, 2, 8), ValueError, r'k.shape = \[2, 4, 2, 8\]: must be \[2, 4, 3, 8\]'),
    (prefill, 'v', zeros(1, 4, 3, 8), ValueError, 'v.shape'),
    (prefill, 'v', zeros(2, 6, 3, 8), ValueError, 'q has 4 heads, v has 6'),
    (prefill, 'ed', zeros(5), ValueError, 'slopes has 5 values'),
    (prefill, 'kv_history', zeros(2, 4, 8, 9), ValueError, 'kv_history.shape'),
    (prefill, 'decay', 'linear', ValueError, "decay = 'linear': must be one of 'recurrence', 'vllm'"),
    (prefill, 'precision', 'half', ValueError, 'precision'),
    (prefill, 'scale', 'large', TypeError, 'scale is a str: must be a number'),
    (prefill, 'scale', 0.0, ValueError, 'scale = 0.0: must not be 0'),
    (decode, 'scale', 1e-60, ValueError, 'scale = 1e-60: must not be 0'),
    (packed, 'scale', 0, ValueError, 'scale = 0: must not be 0'),
    (packed, 'max_query_len', 2.5, TypeError, 'max_query_len is a float: must be an int'),
    (packed, 'max_query_len', -1, lattn.Error, 'max_tokens = -1'),
    (prefill, 'scale', float('nan'), lattn.Error, 'scale'),
    (decode, 'slot_idx', zeros(2), TypeError, 'slot_idx.dtype = torch.float32: must be torch.int32, torch.int64'),
    (decode, 'slot_idx', zeros(2, dtype=I16), TypeError, 'slot_idx.dtype'),
    (decode, 'slot_idx', zeros(2, dtype=torch.bool), TypeError, 'slot_idx.dtype'),
    (decode, 'slot_idx', zeros(3, dtype=I32), ValueError, 'slot_idx.shape'),
    (decode, 'kv_caches', zeros(3, 4, 8, 7), ValueError, r'kv_caches.shape = .*must be \[any, 4, 8, 8\]'),
    (decode, 'kv_caches', zeros(3, 4, 8, 8, dtype=I32), TypeError, 'kv_caches.dtype'),
    (decode, 'kv_caches', lambda device: torch.zeros(1, 4, 8, 8, device=device).expand(3, 4, 8, 8),
     lattn.Error, 'stride'),
    (decode, 'kv_caches', lambda device: torch.zeros(1, 1, 1, 1, device=device).expand(3, 4, 8, 8),
     ValueError, 'kv_caches.* overlap'),
    (packed, 'kv_caches', zeros(0, 4, 8, 8), ValueError, 'kv_caches has no rows'),
    (packed, 'q', zeros(1, 5, 4, 8), ValueError, r'must be \[n, h, dim\]'),
    (packed, 'query_start_loc', zeros(3, dtype=torch.int64), TypeError,
     'query_start_loc.dtype = torch.int64: must be torch.int32'),
    (packed, 'query_start_loc', zeros(4, dtype=I32), ValueError, 'query_start_loc.shape'),
    (packed, 'state_indices', zeros(2, dtype=I16), TypeError, 'state_indices.dtype'),
    (packed, 'state_indices', zeros(2, 1, dtype=I32), ValueError, 'state_indices.shape'),
    (packed, 'has_initial_state', zeros(2), TypeError, 'has_initial_state.dtype'),
    (packed, 'has_initial_state', zeros(3, dtype=torch.bool), ValueError, 'has_initial_state.shape'),
]
# Each tensor but q, elsewhere; its name in the message is that of the op.
for function, names in ((prefill, 'k v ed kv_history'), (decode, 'kv_caches slope_rate slot_idx'),
                        (packed, 'kv_caches query_start_loc state_indices has_initial_state')):
    for name in names.split():
        shape = function('meta')[1][name].shape
        word = {'ed': 'slopes', 'slope_rate': 'slopes'}.get(name, name)
        BAD.append((function, name, elsewhere(*shape), ValueError, f'{word}.device = .*: must be'))


@pytest.mark.usefixtures('way')
@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('case', BAD, ids=lambda case: f'{case[0].__name__}-{case[1]}-{case[3].__name__}')
def test_refused(device, case):
    build, name, bad, kind, words = case
    function, arguments = build(device)
    function(**arguments)
    with pytest.raises(kind, match=words) as caught:
        function(**{**arguments, name: bad(device) if callable(bad) else bad})
    assert type(caught.value) is kind and '\n' not in str(caught.value.args[0])


@pytest.mark.parametrize('device', DEVICES)
def test_rules_of_the_library(device):
    """What the C side refuses is lattn.Error, a RuntimeError, with its message and status."""
    function, arguments = prefill(device)
    x = torch.zeros(2, 4, 3, 300, device=device)
    with pytest.raises(lattn.Error, match='d = 300: must be 1 to 256') as caught:
        function(**{**arguments, 'q': x, 'k': x, 'kv_history': None})
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.args[1] == 'LATTN_ERROR_INVALID_ARGUMENT'


@pytest.mark.parametrize('build', [prefill, decode, packed])
def test_no_backward_pass(build):
    function, arguments = build('cpu')
    grad = {**arguments, 'k': torch.zeros_like(arguments['k'], requires_grad=True)}
    with pytest.raises(ValueError, match='k requires grad: there is no backward pass'):
        function(**grad)
    with torch.no_grad():
        function(**grad)
    with torch.inference_mode():
        function(**grad)


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('tokens', [0, 9])
def test_tokens_of_a_decode(device, tokens):
    function, arguments = decode(device)
    x = torch.zeros(2, 4, tokens, 8, device=device)
    with pytest.raises(ValueError, match='must have 1 to 8 tokens'):
        function(**{**arguments, 'q': x, 'k': x, 'v': x})


def test_other_devices():
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            torch.zeros(1, device='cuda')
    function, arguments = prefill('cpu')
    with pytest.raises(ValueError, match='q.device = meta|k.device = cpu: must be meta, as q'):
        function(**{**arguments, 'q': arguments['q'].to('meta')})


@pytest.mark.parametrize('device', DEVICES)
def test_a_refused_call_leaves_the_pool(device):
    function, arguments = decode(device)
    pool = torch.randn(3, 4, 8, 8, device=device)
    before = pool.clone()
    with pytest.raises(TypeError):
        function(**{**arguments, 'kv_caches': pool, 'slot_idx': torch.zeros(2, device=device)})
    assert torch.equal(pool, before)
