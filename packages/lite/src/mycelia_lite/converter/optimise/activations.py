"""Activations: inside of the operator before them, two in a row, and spelled by several operators."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.converter.optimise.graph import FileGraph, FileNode
from mycelia_lite.converter.optimise.pattern import Any, Match, Number, Op
from mycelia_lite.converter.optimise.registry import fusion, node_fusion
from mycelia_lite.converter.optimise.slices import read_slice
from mycelia_lite.format import Table

_X = Any("x")
_INSIDE = ("RELU", "RELU6")  # what operators of MindSpore Lite have as an attribute


def activation(kind: str, **more: object) -> Table:
    return Table("Activation", activation_type=kind, **more)


def takes_activation(name: str, *kinds: str) -> None:
    """Registers the rule: an activation behind an operator of these kinds becomes its attribute."""

    @node_fusion(name, "Activation")
    def inside(graph: FileGraph, node: FileNode) -> bool:
        if node.activation not in _INSIDE or not graph.is_float(node.output):
            return False
        before = graph.sole_maker(node.inputs[0], *kinds)
        if before is None or before.activation != "NO_ACTIVATION":
            return False
        op = before.op.copy()
        op.activation_type = node.op.activation_type
        graph.replace(node, op, before.inputs, [before])
        return True


@node_fusion("AddConcatActivationFusion", "Activation")
def add_concat_activation(graph: FileGraph, node: FileNode) -> bool:
    """act(concat(a + b, c + d)) -> concat(act(a + b), act(c + d))"""
    if node.activation not in _INSIDE or not graph.is_float(node.output):
        return False
    concat = graph.sole_maker(node.inputs[0], "Concat")
    if concat is None:
        return False
    sums = [graph.sole_maker(i, "AddFusion") for i in concat.inputs]
    if len(set(map(id, sums))) != len(sums) or any(
        s is None or s.activation != "NO_ACTIVATION" for s in sums
    ):
        return False
    for s in sums:
        op = s.op.copy()
        op.activation_type = node.op.activation_type
        graph.replace(s, op, s.inputs)
    graph.replace(node, concat.op, concat.inputs, [concat])
    return True


#: (first, second) -> the one that they equal
_IN_A_ROW = {
    ("RELU", "RELU"): "RELU", ("RELU", "RELU6"): "RELU6", ("RELU6", "RELU"): "RELU6",
    ("RELU6", "RELU6"): "RELU6",
    ("ABS", "ABS"): "ABS", ("RELU", "ABS"): "RELU", ("RELU6", "ABS"): "RELU6", ("SIGMOID", "RELU"): "SIGMOID",
    ("SIGMOID", "RELU6"): "SIGMOID", ("HSIGMOID", "RELU"): "HSIGMOID", ("HSIGMOID", "RELU6"): "HSIGMOID",
}  # fmt: skip


@fusion("ActivationFusion", Op("Activation", Op("Activation", _X, name="first"), name="second"))
def in_a_row(graph: FileGraph, m: Match) -> bool:
    both = m.named["first"].activation, m.named["second"].activation
    if both not in _IN_A_ROW:
        return False
    graph.replace(m.root, activation(_IN_A_ROW[both]), [m["x"]], m.inner)
    return True


@fusion("ActivationFusion", Op("Clip", _X))
def clip(graph: FileGraph, m: Match) -> bool:
    """A Clip to [0, 6] or [0, inf] is an activation; its bounds are attributes, or the inputs behind x."""
    bounds = m.root.op.min, m.root.op.max
    if len(m.root.inputs) > 1:
        low, high, *more = (*m.root.inputs[1:], None, None)[:3]
        if more[0] is not None or high is None:
            return False
        bounds = graph.number(low), graph.number(high)
    kind = {(0, 6): "RELU6", (0, math.inf): "RELU"}.get(bounds)
    if kind is None:
        return False
    graph.replace(m.root, activation(kind), [m["x"]])
    return True


# ---- one activation in several operators ---------------------------------------------------------------


def _spelled(graph: FileGraph, m: Match, kind: str, **more: object) -> bool:
    """Whether the match, which has the shape of x, became one activation."""
    if graph.rank(m.root.output) != graph.rank(m["x"]):
        return False  # a constant of more dimensions than x
    graph.replace(m.root, activation(kind, **more), [m["x"]], m.inner)
    return True


def _of_three(a, b, c) -> list[Op]:
    """The product of three factors in all orders."""
    return [Op("MulFusion", x, Op("MulFusion", y, z)) for x, y, z in ((a, b, c), (b, a, c), (c, a, b))]


def _divided(x, by: float) -> list[Op]:
    """x / by, or x times the inverse."""
    return [Op(("DivFusion", "RealDiv"), x, Number(by)), Op("MulFusion", x, Number(1 / by))]


@fusion("SigmoidMulFusion", Op("MulFusion", _X, Op("Activation", _X, activation_type="SIGMOID")))
def swish(graph: FileGraph, m: Match) -> bool:
    """x * sigmoid(x) -> Swish"""
    return _spelled(graph, m, "SWISH")


_CUT = [  # min(max(x + 3, 0), 6)
    Op("Activation", Op("AddFusion", _X, 3), activation_type="RELU6"),
    Op("Minimum", Op("Maximum", Op("AddFusion", _X, 3), 0), 6),
    Op("Clip", Op("AddFusion", _X, 3), min=0.0, max=6.0),
]
_SIXTH = [cut for c in _CUT for cut in _divided(c, 6)]
for _line in (Op("AddFusion", part, 0.5) for part in _divided(_X, 6)):
    _SIXTH += [Op("Clip", _line, min=0.0, max=1.0), Op("Minimum", Op("Maximum", _line, 0), 1)]


@fusion("HardSwishFusion", *_SIXTH)
def hard_sigmoid(graph: FileGraph, m: Match) -> bool:
    """relu6(x + 3) / 6 -> HardSigmoid"""
    return _spelled(graph, m, "HSIGMOID")


@fusion(
    "HardSwishFusion",
    Op("MulFusion", _X, Op("Activation", _X, activation_type="HSIGMOID")),
    *(p for cut in _CUT for p in _divided(Op("MulFusion", _X, cut), 6)),
    *(Op("MulFusion", over, cut) for cut in _CUT for over in _divided(_X, 6)),
)
def hard_swish(graph: FileGraph, m: Match) -> bool:
    """x * relu6(x + 3) / 6 -> HardSwish"""
    return _spelled(graph, m, "HSWISH")


_ERF = [Op("AddFusion", Op("Erf", inner), 1) for inner in _divided(_X, math.sqrt(2))]


@fusion("OnnxGeLUFusion", *(p for e in _ERF for p in _of_three(_X, 0.5, e)))
def gelu(graph: FileGraph, m: Match) -> bool:
    """0.5 x (1 + erf(x / sqrt(2))) -> GELU"""
    return _spelled(graph, m, "GELU", approximate=False)


_CUBES = [
    Op("PowFusion", _X, 3, scale=1.0, shift=0.0),
    Op("MulFusion", _X, Op("MulFusion", _X, _X)),
    Op("MulFusion", _X, Op("Square", _X)),
    Op("MulFusion", _X, Op("PowFusion", _X, 2, scale=1.0, shift=0.0)),
]
_ARGUMENTS = [
    Op("MulFusion", Op("AddFusion", _X, Op("MulFusion", cube, 0.044715)), math.sqrt(2 / math.pi))
    for cube in _CUBES
]
_TANH = [Op("AddFusion", Op("Activation", a, activation_type="TANH"), 1) for a in _ARGUMENTS]


@fusion("TfGeLUFusion", *(p for t in _TANH for p in _of_three(_X, 0.5, t)))
def gelu_by_tanh(graph: FileGraph, m: Match) -> bool:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) -> GELU, the approximate one"""
    return _spelled(graph, m, "GELU", approximate=True)


_RELU = Op("Activation", _X, activation_type="RELU")
_LESS = [  # min(x, 0), all with a factor: the slope, and the sign that it has
    (Op("Minimum", _X, 0), 1.0),
    (Op("Neg", Op("Activation", Op("Neg", _X), activation_type="RELU")), 1.0),
    (Op("Activation", Op("Neg", _X), activation_type="RELU"), -1.0),
]


def _slopes(graph: FileGraph, tensor: int) -> bool:
    return graph.float_constant(tensor) is not None


def _register_prelu() -> None:
    slope = Any("slope", _slopes)
    for part, sign in _LESS:

        def prelu(graph: FileGraph, m: Match, sign: float = sign) -> bool:
            """relu(x) + slope min(x, 0) -> PReLU, whose slopes lie along the last axis"""
            shape, slopes = graph.shape(m["x"]), graph.constant(m["slope"])
            one = slopes.size == 1
            if not np.isfinite(slopes).all() or not graph.keeps_shape(m["x"], m["slope"]):
                return False
            if not one and (slopes.shape[-1] != shape[-1] or slopes.size != shape[-1]):
                return False
            flat = np.float32(sign) * slopes.reshape(-1)
            made = graph.add_constant(flat, f"{m.root.name}/slope")
            graph.replace(m.root, Table("PReLUFusion", channel_shared=one), [m["x"], made], m.inner)
            return True

        fusion("PReLUFusion", Op("AddFusion", _RELU, Op("MulFusion", part, slope)))(prelu)


_register_prelu()
takes_activation("MatMulActivationFusion", "MatMulFusion", "FullConnection")
takes_activation("ConvActivationFusion", "Conv2DFusion", "Conv2dTransposeFusion")
takes_activation("MulActivationFusion", "MulFusion")
takes_activation("AddActivationFusion", "AddFusion")
takes_activation("ScaleActivationFusion", "ScaleFusion")
takes_activation("AffineActivationFusion", "Affine")


@node_fusion("GLUFusion", "MulFusion")
def gated(graph: FileGraph, node: FileNode) -> bool:
    """The first half along an axis times the sigmoid of the second one -> GLU"""
    if node.activation != "NO_ACTIVATION" or len(node.inputs) != 2:
        return False
    for first, gate in (node.inputs, node.inputs[::-1]):
        sigmoid = graph.sole_maker(gate, "Activation")
        if sigmoid is None or sigmoid.activation != "SIGMOID" or not graph.is_float(node.output):
            continue
        halves = graph.maker.get(first), graph.maker.get(sigmoid.inputs[0])
        found = _halves_of(graph, first, sigmoid.inputs[0], *halves)
        if found is None or any(
            len(graph.readers[t]) > 1 or t in graph.pinned for t in (first, sigmoid.inputs[0])
        ):
            continue
        x, axis = found
        graph.replace(node, Table("GLU", axis=axis), [x], [*dict.fromkeys(halves), sigmoid])
        return True
    return False


def _halves_of(
    graph: FileGraph, first: int, second: int, one: FileNode | None, other: FileNode | None
) -> tuple[int, int] | None:
    """(x, axis) if two tensors are the halves of x along an axis, in their order."""
    if one is None or other is None or not one.inputs or one.inputs[:1] != other.inputs[:1]:
        return None
    x = one.inputs[0]
    whole = graph.shape(x)
    if one is other:
        even = one.kind == "Split" and one.outputs == [first, second]
        even = even and graph.shape(first) == graph.shape(second)
        return (x, one.op.axis % len(whole)) if even else None
    cuts = [read_slice(graph, n) if n.kind in ("StridedSlice", "SliceFusion") else None for n in (one, other)]
    if None in cuts:
        return None
    axes = [a for a, n in enumerate(whole) if cuts[0][a] != (0, 1, n)]
    if len(axes) != 1 or whole[axes[0]] % 2:
        return None
    half, rest = whole[axes[0]] // 2, [c for a, c in enumerate(cuts[1]) if a != axes[0]]
    if rest != [(0, 1, n) for a, n in enumerate(whole) if a != axes[0]]:
        return None
    halves = (0, 1, half), (half, 1, half)
    return (x, axes[0]) if (cuts[0][axes[0]], cuts[1][axes[0]]) == halves else None
