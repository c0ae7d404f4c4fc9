"""Models of integers node by node in NumPy, from what files say: whole sums, each result rounded once."""

from __future__ import annotations

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table

F = np.float32


def run(model: Table, *arrays: np.ndarray) -> dict[str, np.ndarray]:
    """Every tensor by its name."""
    known = {int(i): np.asarray(a) for i, a in zip(model.inputIndex, arrays, strict=True)}
    order = model.subGraph[0].nodeIndices if model.subGraph else range(len(model.nodes))
    for index in order:
        node = model.nodes[int(index)]
        made = _RULES[node.primitive.kind](_Node(model, node, known))
        for tensor, array in zip(node.outputIndex, made if isinstance(made, list) else [made], strict=True):
            known[int(tensor)] = array
    return {model.allTensors[i].name: a for i, a in known.items()}


class _Node:
    def __init__(self, model: Table, node: Table, known: dict[int, np.ndarray]) -> None:
        self.model, self.node, self.known = model, node, known
        self.operator = node.primitive
        self.inputs = [int(i) for i in node.inputIndex]

    def table(self, place: int) -> Table:
        return self.model.allTensors[self.inputs[place]]

    def array(self, place: int) -> np.ndarray | None:
        if place >= len(self.inputs):
            return None
        table = self.table(place)
        if self.inputs[place] in self.known:
            return self.known[self.inputs[place]]
        return np.frombuffer(table.data, DataType(table.dataType).numpy).reshape([int(n) for n in table.dims])

    def result(self, place: int = 0) -> Table:
        return self.model.allTensors[int(self.node.outputIndex[place])]

    def numbers(self, place: int) -> np.ndarray:
        scale, zero = _grid(self.table(place))
        return (self.array(place).astype(F) - F(zero)) * F(scale)

    def centered(self, place: int) -> np.ndarray:
        return self.array(place).astype(np.int64) - _grid(self.table(place))[1]

    def finished(self, steps: np.ndarray) -> np.ndarray:
        """Numbers in steps of the result, within the limits of the activation."""
        scale, zero = _grid(self.result())
        low, high = -128, 127
        kind = self.operator.activation_type.name if hasattr(self.operator, "activation_type") else ""
        if kind in ("RELU", "RELU6"):
            low = zero
        if kind == "RELU6":
            high = min(127, int(np.rint(6 / scale)) + zero)
        return np.clip(np.rint(steps) + zero, low, high).astype(np.int8)


def _grid(table: Table) -> tuple[float, int]:
    (param,) = table.quantParams
    return float(F(param.scale)), int(param.zeroPoint)


def _is_narrow(table: Table) -> bool:
    return table.dataType == int(DataType.INT8)


def _cast(n: _Node):
    if not _is_narrow(n.table(0)):
        return n.finished(n.array(0) / F(_grid(n.result())[0]))
    return n.finished(n.numbers(0) / F(_grid(n.result())[0])) if _is_narrow(n.result()) else n.numbers(0)


def _scaled(n: _Node, sums: np.ndarray):
    if (bias := n.array(2)) is not None:
        sums = sums + bias
    weights = np.array([p.scale for p in n.table(1).quantParams], F)
    factor = weights.astype(np.float64) * _grid(n.table(0))[0]
    if _is_narrow(n.result()):
        return n.finished(sums.astype(F) * (factor / _grid(n.result())[0]).astype(F))
    made = sums.astype(F) * factor.astype(F)
    kind = n.operator.activation_type.name
    return {"NO_ACTIVATION": made, "RELU": np.maximum(made, 0)}[kind]


def _conv(n: _Node):
    a, x, w = n.operator, n.centered(0), n.array(1).astype(np.int64)
    stride, dilation = ([int(v) for v in f] or [1, 1] for f in (a.stride, a.dilation))
    top, bottom, left, right = [int(v) for v in a.pad_list] or [0] * 4
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, w.shape[1:3])]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, (1, 2))
    windows = windows[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    if int(a.group) > 1:
        return _scaled(n, np.einsum("nhwcij,cij->nhwc", windows, w[..., 0]))
    return _scaled(n, np.einsum("nhwcij,oijc->nhwo", windows, w))


def _product(n: _Node):
    w = n.array(1).astype(np.int64)
    transposed = n.operator.kind == "FullConnection" or n.operator.transpose_b
    x = n.centered(0)
    x = x.reshape(len(x), -1) if n.operator.kind == "FullConnection" else x
    return _scaled(n, x @ (w.T if transposed else w))


def _pair(n: _Node):
    scale = _grid(n.result())[0]
    (x, a), (y, b) = ((n.centered(i).astype(F), _grid(n.table(i))[0]) for i in (0, 1))
    if n.operator.kind == "MulFusion":
        return n.finished((x * F(a * b / scale)) * y)
    x, y = x * F(a / scale), y * F(b / scale)
    return n.finished(x + y if n.operator.kind == "AddFusion" else x - y)


def _pool(n: _Node):
    a, x = n.operator, n.centered(0)
    size, stride = ([int(v) for v in f] or [1, 1] for f in (a.kernel_size, a.strides))
    if a.global_:
        size, stride = list(x.shape[1:3]), [1, 1]
    top, bottom, left, right = [int(v) for v in a.pad] or [0] * 4
    pads = ((0, 0), (top, bottom), (left, right), (0, 0))
    largest = a.kind == "MaxPoolFusion"

    def windows(v, fill):
        made = np.lib.stride_tricks.sliding_window_view(np.pad(v, pads, constant_values=fill), size, (1, 2))
        return made[:, :: stride[0], :: stride[1]]

    factor = _grid(n.table(0))[0] / _grid(n.result())[0]
    if largest:
        return n.finished(windows(x, -999).max((-2, -1)).astype(F) * F(factor))
    count = windows(np.ones_like(x), 0).sum((-2, -1))
    return n.finished(windows(x, 0).sum((-2, -1)).astype(F) * (factor / count).astype(F))


def _mean(n: _Node):
    x = n.centered(0)
    count = x.shape[1] * x.shape[2]
    factor = F(_grid(n.table(0))[0] / _grid(n.result())[0] / count)
    return n.finished(x.sum((1, 2), keepdims=bool(n.operator.keep_dims)).astype(F) * factor)


def _concat(n: _Node):
    scale, zero = _grid(n.result())
    parts = []
    for i in range(len(n.inputs)):
        if _grid(n.table(i)) == (scale, zero):
            parts.append(n.array(i))
        else:
            steps = n.centered(i).astype(np.float64) * _grid(n.table(i))[0] / scale
            parts.append(np.clip(np.rint(steps) + zero, -128, 127).astype(np.int8))
    return np.concatenate(parts, int(n.operator.axis))


def _activation(n: _Node):
    kinds = {
        "RELU": lambda x: np.maximum(x, 0), "TANH": np.tanh,
        "SIGMOID": lambda x: 1 / (1 + np.exp(-x.astype(float))),
        "HSWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    }  # fmt: skip
    if not _is_narrow(n.table(0)):
        return kinds[n.operator.activation_type.name](n.array(0))
    scale, zero = _grid(n.result())
    made = kinds[n.operator.activation_type.name](n.numbers(0)).astype(np.float64)
    return np.clip(np.rint(made / scale) + zero, -128, 127).astype(np.int8)


def _softmax(n: _Node):
    x = np.exp(n.array(0) - n.array(0).max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


_RULES = {
    "QuantDTypeCast": _cast, "Conv2DFusion": _conv, "MatMulFusion": _product, "FullConnection": _product,
    "AddFusion": _pair, "SubFusion": _pair, "MulFusion": _pair, "MaxPoolFusion": _pool,
    "AvgPoolFusion": _pool, "ReduceFusion": _mean, "Concat": _concat, "Activation": _activation,
    "Reshape": lambda n: n.array(0).reshape(n.array(1)),
    "Flatten": lambda n: n.array(0).reshape(len(n.array(0)), -1),
    "Transpose": lambda n: np.transpose(n.array(0), n.array(1)), "Softmax": _softmax,
}  # fmt: skip
