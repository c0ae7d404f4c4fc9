"""The rule of optimise/attention.py, which `optimizeTransformer` asks for, and where it fires not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
import mycelia_lite as mslite
from mycelia_lite.converter import convert
from mycelia_lite.format import read

from ..onnx_models import model, node
from ..onnx_models import write as write_onnx
from .small_models import Net, answers, check, kinds, load

B, T, S, H, D, E = 2, 5, 7, 3, 4, 6
RULE = "MultiHeadAttentionFusion"
ZOO = Path(__file__).parents[5] / "examples" / "zoo"


def attention(
    net,
    *,
    first=False,
    self_attention=False,
    scale="scores",
    mask=None,
    axis=3,
    back=None,
    factor=0.5,
    act=None,
    joined=False,
):
    """The nodes of an attention over heads."""
    order = (1, 2, 0, 3) if first else (0, 2, 1, 3)

    def rows(n, width):
        return net.input(*((n, B) if first else (B, n)), width)

    def heads(x, n, width):
        if joined:
            x = net.activation(net.reshape(x, B * n, H * width), "TANH")
        return net.transpose(net.reshape(x, *((n, B) if first else (B, n)), H, width), *order)

    keys = T if self_attention else S
    q = heads(rows(T, H * D), T, D)
    k, v = heads(rows(keys, H * D), keys, D), heads(rows(keys, H * E), keys, E)
    if scale == "query":
        q = net("MulFusion", net.constant(factor), q)
    scores = net("MatMulFusion", q, k, transpose_b=True)
    if act:
        scores = net.activation(scores, act)
    if scale == "scores":
        scores = net("DivFusion", scores, net.constant(1 / factor))
    if mask:
        scores = net("AddFusion", net.weights(*mask), scores)
    weights = net("Softmax", scores, axis=[axis])
    y = net.transpose(net("MatMulFusion", weights, v), *(back or ((2, 0, 1, 3) if first else (0, 2, 1, 3))))
    return net.reshape(y, *((T, B) if first else (B, T)), H * E), scores


SPELLINGS = {
    "positions behind the batch": {},
    "positions in front": {"first": True},
    "scaled queries": {"scale": "query"},
    "no scale": {"scale": ""},
    "of itself": {"self_attention": True},
    "a mask for all heads": {"mask": (B, 1, 1, S)},
    "a mask of each score": {"mask": (B, H, T, S), "first": True},
    "rows one behind the other": {"joined": True, "first": True},
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_attention_is_one_node(name):
    net = Net()
    y, _ = attention(net, **SPELLINGS[name])
    model = check(net, y, RULE, tolerance=1e-6)
    assert kinds(model).count("Custom") == 1 and "Softmax" not in kinds(model)
    assert name == "rows one behind the other" or kinds(model) == ["Custom"]


def turned(net, x, b, t, width, *, keys="", flat=False):
    """Heads of x [B, T, H width], or [T, B, H width] if `flat`, as PyTorch's exporters spell them."""
    if flat:  # heads and batch in one axis
        x = net.transpose(net.reshape(x, t, b * H, width), 1, 0, 2)
        return net.transpose(x, 0, 2, 1) if keys else x
    x = net.reshape(x, b, t, H, width)
    if keys == "at once":
        return net.transpose(x, 0, 2, 3, 1)
    x = net.transpose(x, 0, 2, 1, 3)
    if keys == "in three axes":
        return net.reshape(net.transpose(net.reshape(x, b * H, t, width), 0, 2, 1), b, H, width, t)
    return net.transpose(x, 0, 1, 3, 2) if keys else x


def exported(net, *, keys="at once", flat=False, mask=None, result=None, wrong=False):
    rows = (lambda n: (n, B)) if flat else (lambda n: (B, n))
    inputs = [net.input(*rows(n), H * w) for n, w in ((T, D), (S, D), (S, E))]
    q = turned(net, inputs[0], B, T, D, flat=flat)
    k, v = turned(net, inputs[1], B, S, D, keys=keys, flat=flat), turned(net, inputs[2], B, S, E, flat=flat)
    scores = net("MatMulFusion", *(net("MulFusion", x, net.constant([0.7])) for x in (q, k)))
    if mask:
        scores = net("AddFusion", scores, net.weights(*mask))
    weights = net("Softmax", scores, axis=[2 if flat else 3])
    y = net("MatMulFusion", weights, v)
    y = net.transpose(y, 1, 0, 2) if flat else net.transpose(y, 0, 2, 1, 3)
    if wrong:
        y = net.transpose(y, 1, 0, 2) if flat else net.transpose(y, 0, 2, 1, 3)
    return net.reshape(y, *(result or (*rows(T), H * E)))


EXPORTED = {
    "keys turned at once": {},
    "keys turned in three axes": {"keys": "in three axes"},
    "keys turned once more": {"keys": "again", "mask": (B, 1, T, S)},
    "heads and batch in one axis": {"flat": True, "mask": (T, S)},
    "rows in one": {"result": (B * T, H * E)},
}


@pytest.mark.parametrize("name", EXPORTED)
def test_attention_of_exporters_is_one_node(name):
    net = Net()
    model = check(net, exported(net, **EXPORTED[name]), RULE, tolerance=1e-6)
    assert kinds(model) == (["Custom", "Reshape"] if name == "rows in one" else ["Custom"])


ODD = {
    "rows of single heads": {"result": (B, T * H, E)},
    "other rows behind it": {"result": (T, B, H * E)},
    "all rows in one of a batch": {"result": (1, B * T, H * E)},
    "a mask of each head of a batch": {"flat": True, "mask": (B * H, T, S)},
    "heads that stay apart": {"wrong": True},
    "heads and batch that stay apart": {"flat": True, "wrong": True},
}


@pytest.mark.parametrize("name", ODD)
def test_what_exporters_do_not_spell_stays(name):
    net = Net()
    check(net, exported(net, **ODD[name]), RULE, fires=0)


def test_keys_of_one_batch_for_all_queries_stay():
    """Products broadcast them, the node does not."""
    net = Net()
    q = turned(net, net.input(B, T, H * D), B, T, D)
    k, v = (turned(net, net.input(1, S, H * w), 1, S, w) for w in (D, E))
    weights = net("Softmax", net("MatMulFusion", q, k, transpose_b=True), axis=[3])
    y = net.transpose(net("MatMulFusion", weights, v), 0, 2, 1, 3)
    check(net, net.reshape(y, B, T, H * E), RULE, fires=0)


@pytest.mark.parametrize("size", [3, 5])
def test_moves_that_suit_one_size_of_an_open_batch_alone_stay(size, tmp_path):
    """Behind the attention are [size, -1, H D], which for a batch of that size alone are its rows."""
    shapes = {"q": (None, size, H * D), "k": (None, S, H * D), "v": (None, S, H * D)}
    weights, nodes = {"back": np.array([size, -1, H * D])}, []
    for x, n, order in (("q", size, [0, 2, 1, 3]), ("k", S, [0, 2, 3, 1]), ("v", S, [0, 2, 1, 3])):
        weights[f"apart_{x}"] = np.array([-1, n, H, D])
        nodes += [
            node("Reshape", f"{x} apart_{x}", f"{x}1"),
            node("Transpose", f"{x}1", f"{x}2", perm=order),
        ]
    nodes += [
        node("MatMul", "q2 k2", "scores"), node("Softmax", "scores", "shares"),
        node("MatMul", "shares v2", "y1"), node("Transpose", "y1", "y2", perm=[0, 2, 1, 3]),
        node("Reshape", "y2 back", "y"),
    ]  # fmt: skip
    message = model(nodes, {x: (np.float32, shape) for x, shape in shapes.items()}, "y", weights)
    source = write_onnx(tmp_path / "m.onnx", message)
    report = convert(mslite.FmkType.ONNX, source, str(tmp_path / "m"), optimize_transformer=True)
    assert not report.fusions.get(RULE)


def test_sizes_of_one_that_do_not_tell_the_batch_stay():
    """Positions and batch are both 1: the node would be another one for other sizes."""
    net = Net()
    x = [net.reshape(net.input(1, 1, H * D), 1, 1, H, D) for _ in range(3)]
    q, k, v = (net.transpose(each, 0, 2, 1, 3) for each in x)
    weights = net("Softmax", net("MatMulFusion", q, k, transpose_b=True), axis=[3])
    y = net.transpose(net("MatMulFusion", weights, v), 0, 2, 1, 3)
    check(net, net.reshape(y, 1, 1, H * D), RULE, fires=0)


NEIGHBOURS = {
    "softmax of other axes": {"axis": 2, "self_attention": True},
    "an activation between": {"act": "RELU"},
    "heads go elsewhere": {"back": (2, 0, 1, 3)},
    "the scores are read": {},
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_is_no_attention(name):
    net = Net()
    y, scores = attention(net, **NEIGHBOURS[name])
    check(net, [y, scores] if name == "the scores are read" else y, RULE, fires=0)


@pytest.mark.parametrize("name", ["bert", "vit"])
def test_transformers_answer_alike_with_and_without_it(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ZOO))
    from zoo import ZOO as networks

    network = networks[name].make().set_train(False)
    inputs = networks[name].inputs(np.random.default_rng(7))
    source = str(tmp_path / "net.mindir")
    ms.export(network, *map(ms.Tensor, inputs), file_name=source, file_format="MINDIR")

    def made(**options):
        report = convert(mslite.FmkType.MINDIR, source, str(tmp_path / "net"), **options)
        return report, read(report.path).copy()

    plain, before = made()
    report, after = made(optimize_transformer=True)
    assert not plain.fusions.get(RULE) and report.fusions[RULE] >= 2
    assert kinds(after).count("Softmax") == 0 < kinds(before).count("Softmax")
    for y, expected in zip(answers(after, *inputs), answers(before, *inputs), strict=True):
        np.testing.assert_allclose(y, expected, atol=1e-5 * np.abs(expected).max())
    left_out, _ = made(optimize_transformer=True, without_fusions=(RULE,))
    assert not left_out.fusions.get(RULE)


def test_heads_that_do_not_fit_are_told():
    net = Net()
    y, _ = attention(net)
    model = check(net, y, RULE, tolerance=1e-6)
    for attribute in model.nodes[0].primitive.attr:
        if attribute.name == "heads":
            attribute.data = (5).to_bytes(8, "little")
    with pytest.raises(RuntimeError, match=r"cannot be shared among 5 heads"):
        load(model)
