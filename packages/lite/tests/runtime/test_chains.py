"""Chains of elementwise nodes that run as one step: the same bits as one node after the other."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table, write

F32, F64, I32, I64, BOOL = np.float32, np.float64, np.int32, np.int64, np.bool_


class Builder:
    """A model made node by node; a tensor is its number."""

    def __init__(self):
        self.tensors, self.nodes, self.inputs, self.types = [], [], [], []

    def tensor(self, dtype, shape, array=None):
        made = Table("Tensor", name=f"t{len(self.tensors)}", dims=list(shape), nodeType=2)
        made.dataType = int(DataType.of(np.dtype(dtype)))
        if array is not None:
            made.nodeType, made.data = 0, np.ascontiguousarray(array)
        self.tensors.append(made)
        self.types.append((np.dtype(dtype), tuple(shape)))
        return len(self.tensors) - 1

    def given(self, dtype, shape):
        self.inputs.append(self.tensor(dtype, shape))
        return self.inputs[-1]

    def constant(self, array):
        return self.tensor(array.dtype, array.shape, array)

    def node(self, kind, inputs, dtype=None, shape=None, **fields):
        if shape is None:
            shape = np.broadcast_shapes(*(self.types[i][1] for i in inputs))
        made = self.tensor(self.types[inputs[-1]][0] if dtype is None else dtype, shape)
        node = Table("CNode", name=f"{kind}{len(self.nodes)}", primitive=Table(kind, **fields))
        node.inputIndex, node.outputIndex = list(inputs), [made]
        self.nodes.append(node)
        return made

    def cast(self, x, dtype):
        kind = self.constant(np.asarray(int(DataType.of(np.dtype(dtype))), I32))
        return self.node("Cast", [x, kind], dtype, self.types[x][1])

    def write(self, path, outputs):
        tables = dict(nodes=self.nodes, allTensors=self.tensors)
        write(path, Table("MetaGraph", inputIndex=self.inputs, outputIndex=list(outputs), **tables))
        return str(path)


def loaded(path, threads=1, lanes=1):
    context = mslite.Context()
    context.cpu.thread_num = threads
    context.cpu.inter_op_parallel_num = lanes
    model = mslite.Model()
    model.build_from_file(path, mslite.ModelType.MINDIR_LITE, context)
    return model


def answers(model, arrays, **callbacks):
    inputs = model.get_inputs()
    for tensor, array in zip(inputs, arrays, strict=True):
        tensor.set_data_from_numpy(array)
    return [t.get_data_to_numpy() for t in model.predict(inputs, **callbacks)]


def ops_of(model):
    """The kernels of the plan's steps."""
    return [
        line.split("\t")[1]
        for line in model.get_model_info("memory_plan").splitlines()
        if line.startswith("step")
    ]


def check(path, arrays, threads=1, lanes=1):
    """The plan's kernels, if a run has the bits of one in which each node runs for itself."""
    model = loaded(path, threads, lanes)
    joined = answers(model, arrays)
    apart = answers(model, arrays, after=lambda *_: True)
    for a, b in zip(joined, apart, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    again = answers(model, arrays)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(joined, again))
    return ops_of(model)


def numbers(rng, dtype, shape):
    """Values of all kinds: zeros, infinities and NaN among the floats."""
    if np.dtype(dtype) == BOOL:
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    x = rng.normal(scale=3, size=shape)
    odd = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 3e38], shape)
    return np.where(rng.random(shape) < 0.02, odd, x).astype(dtype)


# ---- chains as exporters write them ------------------------------------------------------------------------


def gelu(b, x):
    half, root, one = (b.constant(np.asarray(v, F32)) for v in (0.5, np.sqrt(2), 1))
    inner = b.node("AddFusion", [b.node("Erf", [b.node("DivFusion", [x, root])]), one])
    return b.node("MulFusion", [b.node("MulFusion", [x, inner]), half])


def mish(b, x):
    one = b.constant(np.asarray(1, F32))
    soft = b.node("Log", [b.node("AddFusion", [b.node("ExpFusion", [x], base=-1.0, scale=1.0), one])])
    return b.node("MulFusion", [x, b.node("Activation", [soft], activation_type="TANH")])


def masked(b, x):
    low, zero = b.constant(np.asarray(-1, F32)), b.constant(np.asarray(0, F32))
    hides = b.node("Less", [x, low], BOOL)
    return b.node("Where", [hides, zero, b.node("Square", [x])])


def scaled(b, x):
    channels = b.types[x][1][-1]
    scale, shift = (b.constant(np.linspace(low, 2, channels, dtype=F32)) for low in (-1, 0))
    y = b.node("ScaleFusion", [x, scale, shift], shape=b.types[x][1], axis=3)
    return b.node("Activation", [y], activation_type="HSWISH")


@pytest.mark.parametrize("make", [gelu, mish, masked, scaled])
@pytest.mark.parametrize("shape", [(1, 40, 30, 32), (2, 3, 7, 701), (1, 1, 1, 9001), (90, 1, 31, 5)])
def test_a_chain_is_one_step(tmp_path, make, shape):
    b = Builder()
    x = b.given(F32, shape)
    path = b.write(tmp_path / "chain.ms", [make(b, x)])
    arrays = [numbers(np.random.default_rng(1), F32, shape)]
    for threads in (1, 3):
        assert check(path, arrays, threads) == ["chain"]


def test_attention_scores_are_scaled_and_masked_with_their_softmax(tmp_path):
    b = Builder()
    shape = (1, 4, 50, 60)
    x, mask = b.given(F32, shape), b.given(F32, (1, 1, 1, 60))
    y = b.node("MulFusion", [x, b.constant(np.asarray(0.125, F32))])
    y = b.node("Softmax", [b.node("AddFusion", [y, mask])], axis=[3])
    rng = np.random.default_rng(2)
    arrays = [
        rng.normal(size=shape).astype(F32),
        np.where(rng.random((1, 1, 1, 60)) < 0.5, -1e9, 0).astype(F32),
    ]
    path = b.write(tmp_path / "softmax.ms", [y])
    assert check(path, arrays, 2) == ["chain"]
    found = answers(loaded(path), arrays)[0].astype(F64)
    wanted = np.exp(arrays[0] * 0.125 + arrays[1])
    assert np.allclose(found, wanted / wanted.sum(-1, keepdims=True), atol=1e-6)


def test_what_others_read_stays_a_step(tmp_path):
    b = Builder()
    shape = (2, 90, 64)
    x = b.given(F32, shape)
    shared = b.node("Neg", [b.node("Square", [x])])  # an output
    left = b.node("Floor", [b.node("ExpFusion", [shared], base=-1.0, scale=1.0)])
    rows = b.node("Softmax", [shared], axis=[1])
    right = b.node("Abs", [b.node("MulFusion", [rows, x])])
    path = b.write(tmp_path / "shared.ms", [shared, left, right])
    steps = check(path, [numbers(np.random.default_rng(3), F32, shape)])
    assert steps == ["chain", "chain", "softmax", "chain"]


# ---- any chain ---------------------------------------------------------------------------------------------

_UNARY = {
    F32: ["Abs", "Neg", "Square", "Floor", "Ceil", "Round", "Sin", "Cos", "Erf", "Sqrt", "Rsqrt", "Log"],
    F64: ["Abs", "Neg", "Square", "Floor", "Sqrt", "Sin"],
    I32: ["Abs", "Neg", "Square"],
    I64: ["Abs", "Neg", "Square"],
    BOOL: ["LogicalNot"],
}  # fmt: skip
_BINARY = ["AddFusion", "SubFusion", "MulFusion", "Maximum", "Minimum"]
_COMPARE = ["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"]
_ACTIVATIONS = [
    "RELU",
    "RELU6",
    "SIGMOID",
    "TANH",
    "HSWISH",
    "HSIGMOID",
    "SWISH",
    "GELU",
    "LEAKY_RELU",
    "ELU",
]
_SPACES = [(3, 40, 80), (2, 5, 30, 33), (9001,), (1, 12, 32, 32), (25, 4, 2, 7, 9), (2, 8200), (8200, 1, 2)]


def random_chain(rng):
    """A model of some outputs and what its inputs are."""
    b, space, arrays = Builder(), _SPACES[rng.integers(len(_SPACES))], []
    pool = {dtype: [] for dtype in _UNARY}

    def fresh(dtype):
        shape = tuple(n if rng.random() < 0.7 else 1 for n in space)[
            rng.integers(len(space)) if rng.random() < 0.4 else 0 :
        ]
        array = numbers(rng, dtype, shape)
        if rng.random() < 0.4:
            return b.constant(array)
        arrays.append(array)
        return b.given(dtype, shape)

    def pick(dtype):
        known = pool[dtype]
        return known[-1 - rng.integers(min(3, len(known)))] if known and rng.random() < 0.75 else fresh(dtype)

    x = b.given(F32, space)
    arrays.append(numbers(rng, F32, space))
    pool[F32].append(x)
    for _ in range(rng.integers(6, 16)):
        dtype = [F32, F32, F32, F64, I32, I64, BOOL][rng.integers(7)]
        roll = rng.random()
        if dtype is BOOL and roll < 0.5:
            of = [F32, I32, F64][rng.integers(3)]
            made = b.node(str(rng.choice(_COMPARE)), [pick(of), pick(of)], BOOL)
        elif dtype is BOOL:
            kind = ["LogicalAnd", "LogicalOr"][rng.integers(2)]
            made = b.node(kind, [pick(BOOL), pick(BOOL)])
        elif roll < 0.3:
            x = pick(dtype)
            if dtype is F32 and rng.random() < 0.5:
                made = b.node("Activation", [x], activation_type=str(rng.choice(_ACTIVATIONS)), alpha=0.25)
            else:
                made = b.node(str(rng.choice(_UNARY[dtype])), [x])
        elif roll < 0.75:
            made = b.node(str(rng.choice(_BINARY)), [pick(dtype), pick(dtype)])
        elif roll < 0.85:
            made = b.node("Where", [pick(BOOL), pick(dtype), pick(dtype)])
        elif roll < 0.95:
            made = b.cast(pick([F32, I32, BOOL][rng.integers(3)]), dtype)
        else:
            x = pick(dtype)
            shape = b.constant(np.asarray(b.types[x][1] or (1,), I32))
            made = b.node("Reshape", [x, shape], dtype, b.types[x][1] or (1,))
        pool[dtype].append(made)
    made = [t for n in b.nodes for t in n.outputIndex]
    used = {i for n in b.nodes for i in n.inputIndex}
    return b, [t for t in made if t not in used], arrays


def test_random_chains_have_the_bits_of_single_steps(tmp_path):
    chains = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        b, outputs, arrays = random_chain(rng)
        path = b.write(tmp_path / f"{seed}.ms", outputs)
        steps = check(path, arrays, threads=1 + seed % 3, lanes=1 + seed % 2)
        chains += steps.count("chain")
    assert chains > 40


@pytest.mark.parametrize("swapped", [(1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)])
@pytest.mark.parametrize("transposed", [False, True])
def test_heads_are_multiplied_where_they_lie(tmp_path, swapped, transposed):
    b = Builder()
    batch, heads, m, k, n = 2, 3, 37, 16, 21
    order = b.constant(np.asarray([0, 2, 1, 3], I32))

    def side(rows, columns, is_swapped):
        if not is_swapped:
            return b.given(F32, (batch, heads, rows, columns))
        shape = (batch, heads, rows, columns)
        return b.node("Transpose", [b.given(F32, (batch, rows, heads, columns)), order], F32, shape)

    x, y = side(m, k, swapped[0]), side(*((n, k) if transposed else (k, n)), swapped[1])
    z = b.node("MatMulFusion", [x, y], F32, (batch, heads, m, n), transpose_b=transposed)
    if swapped[2]:
        z = b.node("Transpose", [z, order], F32, (batch, m, heads, n))
    path = b.write(tmp_path / "heads.ms", [z])
    rng = np.random.default_rng(5)
    arrays = [rng.normal(size=b.types[i][1]).astype(F32) for i in b.inputs]
    for threads in (1, 3):
        assert check(path, arrays, threads) == ["head_matmul"]
    first, second = (a.swapaxes(1, 2) if s else a for a, s in zip(arrays, swapped))
    wanted = first.astype(F64) @ (second.swapaxes(2, 3) if transposed else second)
    wanted = wanted.swapaxes(1, 2) if swapped[2] else wanted
    assert np.allclose(answers(loaded(path), arrays)[0], wanted, atol=1e-4)
