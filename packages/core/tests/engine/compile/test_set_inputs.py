"""Sizes declared beforehand, and numbers that are variables."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn


def rows(n, width=3):
    return Tensor(np.random.default_rng(n).normal(size=(n, width)).astype(np.float32))


SIZES = (8, 5, 12, 3, 8, 7)


# ---- set_inputs


class Line(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x):
        return self.dense(x)


def test_declared_sizes_need_one_capture():
    net = Line()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    with ms.config.context(mode=ms.GRAPH_MODE):
        assert [net(rows(n)).shape for n in SIZES] == [(n, 2) for n in SIZES]
    assert net.get_inputs()[0].shape == (-1, 3)
    compiled = ms.jit(net)
    assert [compiled(rows(n)).shape for n in SIZES] == [(n, 2) for n in SIZES]
    assert compiled.cache_info().captures == 1


def test_arguments_unlike_the_declaration_are_refused():
    net = Line()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    with ms.config.context(mode=ms.GRAPH_MODE):
        with pytest.raises(ValueError, match="argument 1 must be"):
            net(rows(2, 4))
        with pytest.raises(ValueError, match="argument 1 must be"):
            net(rows(2).reshape(2, 3, 1))
        with pytest.raises(TypeError, match="Float32"):
            net(rows(2).astype(ms.float16))
    with pytest.raises(TypeError, match="takes 1"):
        net.set_inputs(rows(2), rows(2))
    with pytest.raises(ValueError, match="'z'"):
        net.set_inputs(z=rows(2))


# ---- mutable


def test_mutable_numbers_are_variables():
    compiled = ms.jit(lambda x, k, pair: x * k + pair[0] * pair[1]["c"])
    for k, a, c in ((3, 1.5, 2), (4, 2.5, 3), (5, -1.0, 0)):
        got = compiled(rows(2), ms.mutable(k), ms.mutable((a, {"c": c})))
        np.testing.assert_allclose(got.asnumpy(), rows(2).asnumpy() * k + a * c, rtol=1e-6)
    assert compiled.cache_info().captures == 1
    assert ms.mutable(3) + 1 == 4 and ms.mutable([1, 2.0]) == [1, 2.0]


def test_mutable_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="but got str"):
        ms.mutable("a")
    with pytest.raises(TypeError, match="list or tuple"):
        ms.mutable(3, True)
