"""Every op gives the same numbers compiled as it gives eagerly, and so does its gradient."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.testing.conformance import has_gradient
from mycelia.testing.samples import all_samples

SAMPLES = [s for s in all_samples() if s.args]
WITH_GRADIENT = [s for s in SAMPLES if has_gradient(s)]


def flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    return [value]


def assert_equal(got, expected):
    """Passes may choose another kernel, and folding the NumPy body: sums differ by their largest terms."""
    for a, b in zip(flat(got), flat(expected), strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        a, b = a.asnumpy(), b.asnumpy()
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.1) if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * largest)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_compiled_op_equals_eager(sample):
    expected = sample.op(*sample.tensors(), **sample.attrs)
    arguments = sample.tensors()
    got = ms.jit(lambda *args: sample.op(*args, **sample.attrs))(*arguments)
    assert_equal(got, expected)


@pytest.mark.parametrize("sample", WITH_GRADIENT, ids=lambda s: s.name)
def test_compiled_gradient_equals_eager(sample):
    arguments = sample.tensors()
    positions = tuple(
        i
        for i, a in enumerate(arguments)
        if any(isinstance(t, Tensor) and t.dtype.is_floating for t in flat(a))
    )

    def loss(*args):
        out = flat(sample.op(*args, **sample.attrs))
        return sum((o * o).sum() for o in out if o.dtype.is_floating)

    gradient = ms.grad(loss, positions)
    assert_equal(ms.jit(gradient)(*arguments), gradient(*arguments))
