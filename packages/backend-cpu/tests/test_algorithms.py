"""The passes of the CPU backend: algorithms of convolutions and products as attributes of the lowered ops."""

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.backends import registry
from mycelia.engine.compile.passes import algorithms, pipeline
from mycelia.engine.ir.graph import Builder, Graph
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ir.verify import verify
from mycelia.ops.define import find


def rand(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def lowered(folder, function, *inputs, **settings):
    """Op and algorithm of the nodes of the lowered graph that have one, and the result."""
    with ms.config.context(save_graphs=2, save_graphs_path=str(folder), check=True, **settings):
        result = function(*inputs)
    text = next(p for p in sorted(folder.iterdir()) if "_after_lower_" in p.stem).read_text()
    return re.findall(r"= (\w+)\(.*algorithm=\"?(\w+)", text), result


def test_passes_of_the_backend_follow_those_whose_ops_they_change():
    names = [step.name for step in pipeline("lower", registry.load("cpu"))]
    assert names[names.index("layout") + 1] == "winograd"
    assert names[names.index("strassen") - 1] == "matmul"
    assert "winograd" not in [step.name for step in pipeline("lower", registry.load("reference"))]


@pytest.mark.parametrize(("settings", "expected"), [
    ({}, "winograd"), ({"accuracy": "strict"}, "direct"), ({"passes": "-winograd"}, "direct"),
], ids=str)  # fmt: skip
def test_a_large_convolution_is_transformed(tmp_path, settings, expected):
    weight, x = Parameter(rand(64, 64, 3, 3)), rand(1, 64, 56, 56)

    def function(x):
        return ops.conv2d(x, weight, pad_mode="pad", padding=1)

    found, got = lowered(tmp_path, ms.jit(function), x, **settings)
    assert [op for op, _ in found] == ["conv_pack", "conv_last"]
    assert all(algorithm.startswith(expected) for _, algorithm in found) and found[0][1] == found[1][1]
    np.testing.assert_allclose(got.asnumpy(), function(x).asnumpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("settings", "expected"), [({}, "winograd4"), ({"passes": "-winograd"}, "direct")])
def test_gradients_of_convolutions_follow(tmp_path, settings, expected):
    weight, x = Parameter(rand(64, 64, 3, 3)), rand(1, 64, 56, 56)
    gradient = ms.grad(lambda x: ops.conv2d(x, weight, pad_mode="pad", padding=1).sum(), 0, [weight])
    found, _ = lowered(tmp_path, ms.jit(gradient), x, **settings)
    assert ("conv_last_weight_grad", expected) in found


def test_a_product_is_halved_if_accuracy_and_passes_allow_it(tmp_path):
    weight, x = Parameter(rand(768, 768)), rand(65, 768)
    ways = {"fast": {}, "normal": {}, "off": {"accuracy": "fast", "passes": "-strassen"}}
    results = {}
    for way, settings in ways.items():
        function = ms.jit(lambda x: ops.matmul(x, weight))
        found, got = lowered(tmp_path / way, function, x, **({"accuracy": way} | settings))
        kind = "strassen" if way == "fast" else "plain"
        assert found == [("linear_pack", kind), ("linear", kind)]
        results[way] = got.asnumpy()
    np.testing.assert_array_equal(results["normal"], results["off"])
    assert not np.array_equal(results["fast"], results["off"])
    np.testing.assert_allclose(results["fast"], results["off"], rtol=0, atol=1e-3)


@pytest.mark.parametrize("shown", [False, True])
def test_a_pack_that_several_algorithms_read_is_made_for_each(shown):
    graph = Graph("main")
    weight = graph.add_parameter(TensorType(ms.float32, (8, 6)))
    images = [graph.add_parameter(TensorType(ms.float32, (n, 6))) for n in (1, 2, 3, 4)]
    builder = Builder(graph)
    pack = builder.emit(find("linear_pack"), [weight], {})[0]
    made = [builder.emit(find("linear"), [x, pack, None, None], {"channels": 8})[0] for x in images]
    graph.outputs = made + [pack] * shown
    wanted = {1: "plain", 2: "strassen", 3: "strassen", 4: "plain"}
    assert algorithms.choose(graph, "linear", lambda node: wanted[node.inputs[0].type.shape[0]]) == 2
    verify(graph)
    packs = [node for node in graph.nodes if node.op.name == "linear_pack"]
    assert [node.attrs["algorithm"] for node in packs] == ["plain", "strassen"]
    for value in made:
        node = value.producer
        assert node.attrs["algorithm"] == node.inputs[1].producer.attrs["algorithm"]
        assert node.attrs["algorithm"] == wanted[node.inputs[0].type.shape[0]]
    assert algorithms.choose(graph, "linear", lambda node: wanted[node.inputs[0].type.shape[0]]) == 0
    if not shown:  # all go: the plain pack too
        assert algorithms.choose(graph, "linear", lambda node: "strassen") == 2
        assert [n.attrs["algorithm"] for n in graph.nodes if n.op.name == "linear_pack"].count("plain") == 0
        verify(graph)
