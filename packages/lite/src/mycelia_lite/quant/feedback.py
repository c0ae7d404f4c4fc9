"""Rounding of weights that knows data: the error of a weight is made up for by those behind it.

E. Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers, 2022.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.quant.calibration import Data
from mycelia_lite.quant.measure import values
from mycelia_lite.quant.roles import Graph, Role
from mycelia_lite.quant.rounding import Rounded, round_rows

DEEPEST = 6144  # weights of a channel whose products are kept for each pair
_ROWS = 4096  # of data in a run by which products are summed up
_DAMPING = 0.01  # of the mean of the diagonal
_BLOCK = 128  # columns after which all others are made up for


def products(graph: Graph, layers: Sequence[Role], data: Data) -> dict[int, np.ndarray]:
    """For the weights of each layer the sums of products of all pairs of what they are multiplied by.

    [K, K] of float64, in the order of a channel's weights in the file; none for more than `DEEPEST` weights
    of a channel.
    """
    layers = [
        r
        for r in layers
        if _depth(graph, r) <= DEEPEST and int(getattr(r.node.primitive, "group", 1) or 1) == 1
    ]
    found: dict[int, np.ndarray] = {}
    if not layers:
        return found
    tensors = list(dict.fromkeys(r.data[0] for r in layers))
    for arrays in values(graph.model, tensors, data):
        seen = dict(zip(tensors, arrays, strict=True))
        for role in layers:
            rows = _rows(graph, role, seen[role.data[0]])
            if not np.isfinite(rows).all():
                name = graph.model.allTensors[role.data[0]].name
                raise ValueError(f"calibration: '{name}' has elements that are not finite")
            found[role.weights] = found.get(role.weights, 0) + (rows.T @ rows).astype(np.float64)
    return found


def _depth(graph: Graph, role: Role) -> int:
    shape = [int(n) for n in graph.model.allTensors[role.weights].dims]
    return int(np.prod(shape)) // shape[role.axis]


def _rows(graph: Graph, role: Role, x: np.ndarray) -> np.ndarray:
    """[rows, K]: what the weights of a channel are multiplied by."""
    depth = _depth(graph, role)
    if role.kind == "Conv2DFusion":
        x = _windows(graph, role, x)
    rows = x.reshape(-1, depth)
    return rows[:: -(-len(rows) // _ROWS)]


def _windows(graph: Graph, role: Role, x: np.ndarray) -> np.ndarray:
    operator = role.node.primitive
    _, height, width, _ = (int(n) for n in graph.model.allTensors[role.weights].dims)
    stride, dilation = ([int(n) for n in v] or [1, 1] for v in (operator.stride, operator.dilation))
    spans = [(k - 1) * d + 1 for k, d in zip((height, width), dilation)]
    if operator.pad_mode.name == "PAD":
        top, bottom, left, right = [int(n) for n in operator.pad_list] or [0] * 4
    else:
        same = operator.pad_mode.name == "SAME"
        more = [
            max((-(-n // s) - 1) * s + k - n, 0) if same else 0
            for n, s, k in zip(x.shape[1:3], stride, spans)
        ]
        top, left = (m // 2 for m in more)
        bottom, right = more[0] - top, more[1] - left
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(x, spans, (1, 2))
    seen = seen[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]
    seen = seen.reshape(-1, *seen.shape[3:])
    return seen[:: -(-len(seen) // _ROWS)].transpose(0, 2, 3, 1)


def round_fed_back(rows: np.ndarray, products: np.ndarray, bits: int, shifts: bool, group: int) -> Rounded:
    """Integers for weights [channels, K], with scales for each channel, or for each `group` of its weights.

    `products`: [K, K] as of `products`. Rounded rows are [channels * K / group, group].
    """
    left = rows.astype(np.float64)
    depth = left.shape[1]
    span = group or depth
    back = _back(products)
    q, made = np.empty(left.shape, np.int32), []
    for start in range(0, depth, span):
        grid = round_rows(np.ascontiguousarray(left[:, start : start + span], np.float32), bits, shifts)
        made.append(grid)
        scale, zero, shift = (a.astype(np.float64) for a in (grid.scale, grid.zero, grid.shift))
        for first in range(start, start + span, _BLOCK):
            last = min(first + _BLOCK, start + span)
            off = np.empty((len(left), last - first))
            for i in range(first, last):
                exact = (left[:, i] - shift) / scale + zero
                whole = np.clip(np.rint(exact), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
                q[:, i] = whole
                wrong = (left[:, i] - ((whole - zero) * scale + shift)) / back[i, i]
                left[:, i + 1 : last] -= np.outer(wrong, back[i, i + 1 : last])
                off[:, i - first] = wrong
            left[:, last:] -= off @ back[first:last, last:]
    together = [
        np.stack([getattr(g, name) for g in made], 1).reshape(-1) for name in ("scale", "zero", "shift")
    ]
    return Rounded(q.reshape(-1, span), *together)


def _back(products: np.ndarray) -> np.ndarray:
    """The upper factor of the inverse: how an error is made up for by what is behind it."""
    sums = products.copy()
    diagonal = np.diagonal(sums).copy()
    mean = diagonal.mean() or 1.0
    sums[np.diag_indices_from(sums)] += np.where(diagonal == 0, mean, 0) + _DAMPING * mean
    inverse = np.linalg.inv(sums)
    return np.linalg.cholesky((inverse + inverse.T) / 2).T


def lost(before: np.ndarray, after: np.ndarray, products: np.ndarray) -> float:
    """The mean square of what results of [channels, K] weights depart by, relative to their own."""
    before = before.astype(np.float64)
    off = after - before
    whole = ((before @ products) * before).sum()
    return float(((off @ products) * off).sum() / whole) if whole else 0.0
