import pytest


@pytest.fixture(params=['short', 'dispatched'])
def way(request, monkeypatch):
    """Both ways into the C side, where torch has both."""
    import lattn.torch
    if request.param == 'dispatched':
        monkeypatch.setattr(lattn.torch, '_short', False)
    elif not lattn.torch._short:
        pytest.skip('this torch has no DLPack C interface')
