"""Runs on one backend, and what they give compared with what others give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.base import config
from mycelia.testing.tolerances import tolerance


class on_backend:
    """``with on_backend(name):`` runs ops on that backend and goes back afterwards."""

    def __init__(self, name: str):
        self.name = name

    def __enter__(self):
        self.block = config.context(device_target=self.name)
        self.block.__enter__()

    def __exit__(self, *exc):
        self.block.__exit__(*exc)


def assert_close(got: _C.Tensor, want: _C.Tensor, rtol: float | None = None, what: str = "") -> None:
    """Compare Tensors within the tolerance of their dtype. Raises AssertionError with the worst place."""
    assert got.dtype is want.dtype, f"{what}: dtype {got.dtype}, the reference has {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape}, the reference has {want.shape}"
    a, b = got.asnumpy(), want.asnumpy()
    if a.dtype.kind not in "fc":
        np.testing.assert_array_equal(a, b, err_msg=what)
        return
    relative, share = tolerance(want.dtype)
    if rtol is not None:  # sums that cancel: small results have the error of large ones
        relative, share = rtol, max(share, 0.05 * rtol)
    finite = np.abs(b[np.isfinite(b)])
    np.testing.assert_allclose(
        a,
        b,
        rtol=relative,
        atol=share * float(finite.max()) if finite.size else 0.0,
        err_msg=what,
        equal_nan=True,
    )


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Normally distributed float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compare(backend: str, function: Callable[[], Sequence[_C.Tensor]], rtol: float = 1e-4) -> None:
    """`function` gives the same Tensors on `backend` as on the reference."""
    with on_backend("reference"):
        want = function()
    with on_backend(backend):
        got = function()
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        assert_close(g, w, rtol, f"result {i} on {backend}")


def device_of(backend: str) -> int:
    """The number of a backend's device."""
    return registry.load(backend).device
