"""Graphs: text form, verifier, rewriting, walking."""

import numpy as np
import pytest

from mycelia import Tensor, dtypes, ir
from mycelia.engine.ops.control_flow import control  # noqa: F401  (registers cond)
from mycelia.ir import Builder, Graph, InvalidGraph, TensorType, Value, evaluate, verify
from mycelia.ir import text as ir_text
from mycelia.ir.rewrite import Any, Constant, Use, rewrite, rule
from mycelia.ir.walk import clone, free_values, inline, order, substitute, users
from mycelia.ops.define import find

F32 = dtypes.float32
ADD, MUL, NEG, SUB = find("add"), find("mul"), find("neg"), find("sub")


def constant(array):
    tensor = Tensor(np.asarray(array))
    return Value(TensorType(tensor.dtype, tensor.shape), constant=tensor)


@pytest.fixture
def graph():
    """-(-x) + (-y), times 3; a region in a cond; three results."""
    g = Graph("sample")
    x, y = g.add_parameter(TensorType(F32, (2, 3)), "x"), g.add_parameter(TensorType(F32, (2, 3)), "y")
    build = Builder(g, ir.graph.Place('a "b".py', 3, "f"))
    minus_y = build.emit(NEG, [y])[0]
    total = build.emit(ADD, [build.emit(NEG, [build.emit(NEG, [x])[0]])[0], minus_y])[0]
    scaled = build.emit(MUL, [total, constant(np.float32(3))])[0]
    scaled.name = "scaled"
    region = clone(g, "region")
    region.outputs = [region.nodes[-1].outputs[0]]
    pred = build.emit(find("greater"), [build.emit(find("sum"), [x])[0], constant(np.float32(0))])[0]
    chosen = build.emit(find("cond"), [x, y, pred], {"then": region, "otherwise": clone(region)})[0]
    big = build.emit(ADD, [chosen, constant(np.arange(30, dtype=np.float32).reshape(5, 2, 3))])[0]
    g.outputs = [scaled, big, x]
    return g


def assert_same_results(a, b, shape=(2, 3)):
    rng = np.random.default_rng(0)
    inputs = [Tensor(rng.normal(size=shape).astype(np.float32)) for _ in a.parameters]
    for one, other in zip(evaluate(a, inputs), evaluate(b, inputs), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


# ---- text


def test_text_reads_back(graph):
    verify(graph)
    written = str(graph)
    read = ir_text.parse(written, find, ir_text.constant_table(graph))
    verify(read)
    assert str(read) == written
    assert_same_results(graph, read)


@pytest.mark.parametrize(
    "array",
    [
        np.array([np.nan, np.inf, -np.inf, -0.0, 1e-30], np.float32),
        np.array([True, False]),
        np.array([-(2**63), 2**63 - 1]),
        np.array([1 + 2j, -0.5j, complex(np.inf, np.nan)], np.complex64),
        np.zeros((0, 3), np.float16),
        np.float64(0.1),
    ],
    ids=str,
)
def test_constants_read_back_bit_for_bit(array):
    g = Graph()
    g.outputs = [constant(array)]
    read = ir_text.parse(str(g), find).outputs[0]
    assert read.type == g.outputs[0].type
    np.testing.assert_array_equal(read.constant.asnumpy(), np.asarray(array))
    assert read.constant.asnumpy().tobytes() == np.asarray(array).tobytes() or array.dtype.kind == "c"


def test_bfloat16_constant_reads_back():
    tensor = Tensor(np.array([1.5, -3.0, 1 / 3], np.float32), dtypes.bfloat16)
    g = Graph()
    g.outputs = [Value(TensorType(dtypes.bfloat16, (3,)), constant=tensor)]
    read = ir_text.parse(str(g), find).outputs[0].constant
    np.testing.assert_array_equal(read.asnumpy(), tensor.asnumpy())


def test_attributes_read_back():
    g = Graph("attributes")
    x = g.add_parameter(TensorType(F32, (2, -1)), "x")
    build = Builder(g)
    g.outputs = [
        build.emit(find("cast"), [x], {"dtype": dtypes.bool_})[0],
        build.emit(find("sum"), [x], {"dim": (-1,), "keepdim": True})[0],
    ]
    written = str(g)
    assert "dim=(-1)" in written and "dtype=dtype.bool" in written
    read = ir_text.parse(written, find)
    assert [n.attrs for n in read.nodes] == [n.attrs for n in g.nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('graph "g"(%x: Tensor[Float32](2)) {\n  return %y\n}', "line 2"),
        ('graph "g"() {', "text ends"),
        ('graph "g"() { return const @c Tensor[Float32](99) }', "@c"),
        ('graph "g"(%x: Tensor[Float33](2)) { return }', "Float33"),
        ('graph "g"() { return } }', "the end"),
    ],
)
def test_bad_text_is_refused(text, expected):
    with pytest.raises((ValueError, TypeError), match=expected):
        ir_text.parse(text, find)


# ---- verifier


def test_use_before_definition(graph):
    graph.nodes.reverse()
    with pytest.raises(InvalidGraph, match="before it is defined"):
        verify(graph)


def test_wrong_declared_type(graph):
    graph.nodes[0].outputs[0].type = TensorType(F32, (7,))
    with pytest.raises(InvalidGraph, match=r"\(7\)"):
        verify(graph)


def test_region_that_reaches_outside(graph):
    cond = next(n for n in graph.nodes if n.op.name == "cond")
    cond.attrs["then"].nodes[0].inputs[0] = graph.parameters[0]
    assert free_values(cond.attrs["then"]) == [graph.parameters[0]]
    with pytest.raises(InvalidGraph, match="sample.cond.then"):
        verify(graph)


def test_constant_with_another_type():
    g = Graph()
    g.outputs = [Value(TensorType(F32, (2,)), constant=Tensor(np.zeros(3, np.float32)))]
    with pytest.raises(InvalidGraph, match="constant"):
        verify(g)


# ---- rewriting


@rule(Use("neg", Use("neg", Any("x"))))
def double_negation(build, x):
    return x


@rule(Use("add", Any("x"), Use("neg", Any("y"))))
def add_negation(build, x, y):
    return build.emit(SUB, [x, y])[0]


@rule(Use("mul", Any("x"), Constant("three", 3), node="node"))
def triple(build, x, node):
    return build.emit(ADD, [build.emit(ADD, [x, x])[0], x])[0]


def test_rules_apply_until_nothing_matches(graph):
    before = clone(graph)
    assert rewrite(graph, [double_negation, add_negation, triple]) == 3
    verify(graph)
    assert [n.op.name for n in graph.nodes[:3]] == ["sub", "add", "add"]
    rng = np.random.default_rng(1)
    inputs = [Tensor(rng.normal(size=(2, 3)).astype(np.float32)) for _ in range(2)]
    for a, b in zip(evaluate(graph, inputs), evaluate(before, inputs)):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6, atol=1e-6)


def test_same_name_matches_the_same_value_only():
    @rule(Use("sub", Any("x"), Any("x"), node="node"))
    def nothing(build, x, node):
        return constant(np.zeros(x.type.shape, np.float32))

    g = Graph()
    x, y = g.add_parameter(TensorType(F32, (2,))), g.add_parameter(TensorType(F32, (2,)))
    build = Builder(g)
    g.outputs = [build.emit(SUB, [x, y])[0], build.emit(SUB, [x, x])[0]]
    assert rewrite(g, [nothing]) == 1
    assert not g.outputs[0].is_constant and g.outputs[1].is_constant


def test_once_leaves_shared_results_alone():
    @rule(Use("neg", Use("neg", Any("x"), once=True)))
    def cancel(build, x):
        return x

    g = Graph()
    x = g.add_parameter(TensorType(F32, (2,)))
    build = Builder(g)
    inner = build.emit(NEG, [x])[0]
    g.outputs = [build.emit(NEG, [inner])[0], inner]
    assert rewrite(g, [cancel]) == 0
    g.outputs.pop()
    assert rewrite(g, [cancel]) == 1
    assert g.outputs == [x] and g.nodes == []


def test_replacement_of_another_type_is_an_error():
    @rule(Use("neg", Any("x")))
    def wrong(build, x):
        return constant(np.zeros(5, np.float32))

    g = Graph()
    g.outputs = [Builder(g).emit(NEG, [g.add_parameter(TensorType(F32, (2,)))])[0]]
    with pytest.raises(ValueError, match="wrong"):
        rewrite(g, [wrong])


# ---- walking


def test_clone_shares_nothing(graph):
    copy = clone(graph)
    verify(copy)
    assert str(copy) == str(graph)
    mine = {v for n in graph.nodes for v in n.outputs} | set(graph.parameters)
    assert not mine & ({v for n in copy.nodes for v in n.outputs} | set(copy.parameters))


def test_inline_replaces_a_call_by_the_region(graph):
    copy = clone(graph)
    cond = next(n for n in copy.nodes if n.op.name == "cond")
    inline(copy, cond, cond.attrs["then"], cond.inputs[:-1])
    verify(copy)
    assert all(n.op.name != "cond" for n in copy.nodes)
    assert_same_results(graph, copy)


def test_order_places_producers_first(graph):
    graph.nodes.reverse()
    graph.nodes = order(graph)
    verify(graph)


def test_cycle_is_an_error():
    g = Graph()
    node = Builder(g).emit(NEG, [g.add_parameter(TensorType(F32, ()))])[0].producer
    node.inputs = [node.outputs[0]]
    with pytest.raises(ValueError, match="own output"):
        order(g)


def test_users_and_substitute(graph):
    x = graph.parameters[0]
    fresh = graph.add_parameter(x.type, "z")
    count = len(users(graph)[x])
    substitute(graph, {x: fresh})
    assert x not in users(graph) and len(users(graph)[fresh]) == count
    assert graph.outputs[-1] is fresh
    verify(graph)


def test_types():
    a = TensorType(F32, (2, -1))
    assert str(a) == "Tensor[Float32](2, -1)"
    assert a.rank == 2 and a.size == -1 and not a.is_static
    assert a.accepts(TensorType(F32, (2, 5))) and not a.accepts(TensorType(F32, (3, 5)))
    assert ir.types.join(TensorType(F32, (2, 3)), TensorType(F32, (4, 3))) == TensorType(F32, (-1, 3))
    assert ir.types.join(a, TensorType(dtypes.int32, (2, 1))) is None
    assert TensorType(F32, (3, 4)).nbytes == 48
