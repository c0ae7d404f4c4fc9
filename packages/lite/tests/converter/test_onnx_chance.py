"""Random numbers of ONNX files."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.io.onnx import onnx_pb2

from .onnx_files import answers
from .onnx_models import converted, model, node

SHAPE = (300, 40)


@pytest.mark.parametrize("seed", [None, 3.0])
def test_numbers_have_the_spread_that_is_asked_for(tmp_path, seed):
    given = {} if seed is None else {"seed": seed}
    nodes = [
        node("RandomNormal", "", "a", shape=list(SHAPE), mean=2.0, scale=3.0, **given),
        node("RandomUniform", "", "b", shape=list(SHAPE), low=-1.0, high=3.0, dtype=11, **given),
        node("RandomNormalLike", "x", "c", **given), node("RandomUniformLike", "x", "d", **given),
    ]  # fmt: skip
    nodes.append(node("Add", "x a", "y"))
    run = converted(tmp_path, model(nodes, {"x": ("float32", ("n", SHAPE[1]))}, "y b c d"))
    x = np.zeros(SHAPE, np.float32)
    first, second = run(x), run(x)
    wanted = [(2, 3), (1, 4 / 12**0.5), (0, 1), (0.5, 12**-0.5)]
    for y, again, (mean, deviation) in zip(first, second, wanted):
        assert y.shape == SHAPE and abs(y.mean() - mean) < 0.2 and abs(y.std() - deviation) < 0.2
        assert np.array_equal(y, again) == (seed is not None)
    assert first[1].dtype == np.float64 and first[1].min() >= -1 and first[1].max() < 3


def test_two_nodes_of_one_shape_draw_apart(tmp_path):
    nodes = [node("RandomUniformLike", "x", "a", name="one"), node("RandomUniformLike", "x", "b", name="two")]
    run = converted(tmp_path, model(nodes, {"x": ("float32", SHAPE)}, "a b"))
    a, b = run(np.zeros(SHAPE, np.float32))
    assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.05


def test_a_function_that_is_called_twice_draws_twice(tmp_path):
    draws = onnx_pb2.FunctionProto(name="Draws", domain="own", input=["a"], output=["b"])
    draws.node.append(node("RandomUniformLike", "a", "b", name="inner"))
    domains = [onnx_pb2.OperatorSetIdProto(domain=d, version=v) for d, v in (("", 17), ("own", 1))]
    draws.opset_import.append(domains[0])
    calls = [node("Draws", "x", name, domain="own") for name in ("y", "z")]
    message = model(calls, {"x": ("float32", SHAPE)}, "y z")
    message.opset_import.append(domains[1])
    message.functions.append(draws)
    y, z = converted(tmp_path, message)(np.zeros(SHAPE, np.float32))
    assert abs(np.corrcoef(y.ravel(), z.ravel())[0, 1]) < 0.05


def test_numbers_of_an_open_shape(tmp_path):
    nodes = [node("RandomNormalLike", "x", "y", dtype=10)]
    run = converted(tmp_path, model(nodes, {"x": ("float32", ("n", 3))}, "y"))
    for n in (4, 7):
        (y,) = run(np.zeros((n, 3), np.float32))
        assert y.shape == (n, 3) and y.dtype == np.float16 and np.unique(y).size > n


def test_truths_and_classes_by_their_probabilities(tmp_path):
    p = np.full(SHAPE, 0.3, np.float32)
    (y,) = answers(tmp_path, "Bernoulli", [p], dtype=9)
    assert y.dtype == bool and abs(y.mean() - 0.3) < 0.03
    logits = np.log(np.array([[0.6, 0.4, 1e-9], [0.1, 0.1, 0.8]], np.float32))
    (y,) = answers(tmp_path, "Multinomial", [logits], sample_size=4000, dtype=7)
    assert y.shape == (2, 4000) and y.dtype == np.int64
    shares = np.stack([np.bincount(row, minlength=3) / 4000 for row in y])
    np.testing.assert_allclose(shares, np.exp(logits), atol=0.04)
