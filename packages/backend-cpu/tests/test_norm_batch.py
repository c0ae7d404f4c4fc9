"""Native batch normalization against the NumPy bodies in double precision: both layouts, threads."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia.engine.ops.lowered.batch_norm_act import _batch_norm_act_grad, _batch_norm_act_train
from mycelia.engine.ops.nn_ops.batch_norm import _batch_norm_grad, _batch_norm_train
from mycelia_backend_cpu import _native

SHAPES = [(2, 3, 5, 7), (5, 1, 9), (3, 37), (1, 8, 1, 1), (2, 5, 67, 71), (41, 19, 11, 13), (7, 131, 3, 5)]


def inputs(shape, data_format, offset=0.0):
    rng = np.random.default_rng(3)
    x, dy = rng.normal(offset, 2, shape), rng.uniform(-1, 1, shape)
    if data_format == "NHWC":
        x, dy = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, dy))
    scale, bias, mean, variance = (rng.uniform(0.5, 1.5, shape[1]) for _ in range(4))
    return x, dy, scale, bias, mean, variance


def run(op, arrays, **attrs):
    out = op(*(ms.Tensor(a.astype(np.float32)) for a in arrays), **attrs)
    return [t.asnumpy() for t in (out if isinstance(out, tuple) else (out,))]


def assert_close(got, want, rtol):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=rtol * max(1.0, np.abs(w).max(initial=0)))


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_training_and_gradient(shape, data_format, threads):
    x, dy, scale, bias, mean, variance = inputs(shape, data_format)
    how = dict(epsilon=1e-3, data_format=data_format)
    body = _batch_norm_train.definition.body
    _, _, y, batch_mean, inv_std = body(mean, variance, x, scale, bias, momentum=0.1, **how)
    got = run(_batch_norm_train, (mean, variance, x, scale, bias), momentum=0.1, **how)
    assert_close(got, (y, batch_mean, inv_std), 1e-5)
    arrays = (dy, x, scale, batch_mean, inv_std)
    want = _batch_norm_grad.definition.body(*arrays, **how)
    assert_close(run(_batch_norm_grad, arrays, **how), want, 2e-5)


@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_residual_and_activation(shape, data_format, activation):
    """Against the separate kernels: what is passed on at the bends must not depend on rounding."""
    x, dy, scale, bias, mean, variance = inputs(shape, data_format)
    scale *= 3
    residual = np.random.default_rng(4).normal(size=x.shape)
    how = dict(epsilon=1e-3, data_format=data_format)
    plain, batch_mean, inv_std = run(_batch_norm_train, (mean, variance, x, scale, bias), **how)
    limit = {"none": lambda v: v, "relu": lambda v: np.maximum(v, 0), "relu6": lambda v: np.clip(v, 0, 6)}
    act = limit[activation]
    for others in ((), (residual,)):
        arrays = (mean, variance, x, scale, bias, *others)
        got = run(_batch_norm_act_train, arrays, activation=activation, **how)
        assert_close(got[:1], [act(plain + sum(others))], 1e-6)
        assert_close(got[1:], (batch_mean, inv_std), 0)
    if activation == "none":
        return
    gated = np.where((plain > 0) & ((plain < 6) | (activation == "relu")), dy, 0)
    want = run(_batch_norm_grad, (gated, x, scale, batch_mean, inv_std), **how)
    arrays = (dy, x, scale, bias, batch_mean, inv_std)
    assert_close(run(_batch_norm_act_grad, arrays, activation=activation, **how), want, 1e-6)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_a_mean_far_from_zero_keeps_the_variance(data_format):
    x, _, scale, bias, mean, variance = inputs((6, 5, 40, 40), data_format, offset=1000.0)
    x = x.astype(np.float32).astype(np.float64)
    how = dict(epsilon=1e-5, momentum=0.1, data_format=data_format)
    want = _batch_norm_train.definition.body(mean, variance, x, scale, bias, **how)[4]
    got = run(_batch_norm_train, (mean, variance, x, scale, bias), **how)[2]
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_results_do_not_depend_on_threads(data_format):
    x, dy, scale, bias, mean, variance = inputs((16, 67, 23, 19), data_format)
    before, results = _native.threads(), []
    for count in (1, 2):
        _native.set_threads(count)
        forward = run(_batch_norm_train, (mean, variance, x, scale, bias), data_format=data_format)
        arrays = (dy, x, scale, forward[1], forward[2])
        joined = run(_batch_norm_act_train, (mean, variance, x, scale, bias, dy), data_format=data_format)
        joined += run(_batch_norm_act_grad, (*arrays[:3], bias, *arrays[3:]), data_format=data_format)
        forward += joined + run(_batch_norm_grad, arrays, data_format=data_format)
        results.append(forward)
    _native.set_threads(before)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
