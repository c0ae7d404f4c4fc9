"""Results that do not depend on the number of threads: the setting `deterministic`."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, config, nn, ops

_rng = np.random.default_rng(3)


def _tensor(*shape):
    return Tensor(_rng.standard_normal(shape).astype(np.float32))


def _gradients(net, *inputs):
    return ms.value_and_grad(lambda *x: (net(*x) ** 2).sum(), None, net.trainable_params())(*inputs)


def _cases():
    rows, image = _tensor(2048, 128), _tensor(4, 8, 40, 40)
    dense, norm = nn.Dense(128, 384), nn.LayerNorm((128,))
    images = nn.SequentialCell(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3, 2))
    images.set_train()
    encoder = nn.TransformerEncoderLayer(128, 8, 256, dropout=0.0)
    words, table = Tensor(_rng.integers(0, 50, (64, 256)).astype(np.int32)), nn.Embedding(50, 32)
    return {
        "columns": lambda: rows.sum(0), "all": lambda: rows.sum(), "softmax": lambda: ops.softmax(rows, 0),
        "dense": lambda: _gradients(dense, rows), "layer_norm": lambda: _gradients(norm, rows),
        "images": lambda: _gradients(images, image),
        "encoder": lambda: _gradients(encoder, _encoder_input),
        "compiled": lambda: ms.jit(lambda x: _gradients(encoder, x))(_encoder_input),
        "embedding": lambda: _gradients(table, words),
    }  # fmt: skip


_encoder_input = _tensor(16, 64, 128)
_CASES = _cases()


def _bytes(result) -> list[bytes]:
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in _bytes(one)]
    return [result.asnumpy().tobytes()]


@pytest.mark.parametrize("name", _CASES)
def test_results_are_the_same_for_any_number_of_threads(name):
    with config.context(deterministic="ON"):
        found = []
        for threads in (1, 2, 3, 5):
            with config.context(runtime_num_threads=threads):
                found.append(_bytes(_CASES[name]()))
    assert all(one == found[0] for one in found)


def test_the_setting_changes_results_only_by_rounding():
    for case in _CASES.values():
        plain = case()
        with config.context(deterministic="ON"):
            fixed = case()
        for one, other in zip(_flat(plain), _flat(fixed)):
            scale = max(1.0, float(np.abs(one).max()))
            np.testing.assert_allclose(one / scale, other / scale, atol=2e-5)


def _flat(result) -> list[np.ndarray]:
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in _flat(one)]
    return [result.asnumpy()]
