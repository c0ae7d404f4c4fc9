"""What the conformance suite does not see: that it is really this backend that runs."""

from __future__ import annotations

import numpy as np
import pytest
from acme_backend import kernels

import mycelia as ms
from mycelia.backends import registry
from mycelia.testing.comparison import on_backend


@pytest.fixture
def calls(monkeypatch):
    """The names of the kernels that ran."""
    seen = []

    def watched(name, kernel):
        def run(*arrays, **attrs):
            seen.append(name)
            return kernel(*arrays, **attrs)

        return run

    monkeypatch.setattr(kernels, "TABLE", {key: watched(key[0], k) for key, k in kernels.TABLE.items()})
    registry.load.cache_clear()
    yield seen
    registry.load.cache_clear()


def test_its_kernels_run_forward_and_backward(calls):
    x, w = ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.ones((4, 2), np.float32))
    with on_backend("acme"):
        ms.grad(lambda w: ms.ops.relu(x @ w).sum())(w)
    assert calls.count("mat_mul") == 2  # forward, and for the gradient of w
    assert {"relu", "relu_grad"} <= set(calls)


def test_half_precision_goes_through_its_float32_kernels(calls):
    x = ms.Tensor(np.ones(3, np.float16))
    with on_backend("acme"):
        y = x + x
    assert calls == ["add"]
    assert y.dtype is ms.float16


def test_graphs_use_its_kernels(calls):
    x = ms.Tensor(np.ones((2, 2), np.float32))
    with on_backend("acme"):
        ms.jit(lambda x: ms.ops.softmax(x @ x))(x)
    assert calls == ["mat_mul", "softmax"]


def test_missing_kernel_can_be_forbidden():
    with on_backend("acme"), ms.config.context(fallback="error"):
        with pytest.raises(ms.errors.FallbackError, match="sigmoid"):
            ms.ops.sigmoid(ms.Tensor([1.5]))
