"""What tests of kernels share."""

import pytest

from mycelia_backend_cpu import _native


@pytest.fixture(params=[1, 2], ids=["1thread", "2threads"])
def threads(request):
    """The test runs with one thread and with two."""
    before = _native.threads()
    _native.set_threads(request.param)
    yield request.param
    _native.set_threads(before)
