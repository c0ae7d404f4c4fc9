"""Factors of channels with which rounded weights change results least.

J. Lin et al., AWQ: Activation-aware Weight Quantization for LLM Compression and Acceleration, 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mycelia_lite.quant import channels
from mycelia_lite.quant.calibration import Data
from mycelia_lite.quant.feedback import lost
from mycelia_lite.quant.roles import Graph, Role

_SHARES = np.linspace(0, 1, 11)  # of the logarithm of a channel's mean magnitude

Round = Callable[[Role, np.ndarray], np.ndarray]


def rows_of(graph: Graph, role: Role) -> np.ndarray:
    """The weights of a layer as [channels, K]."""
    array = graph.floats(role.weights)
    return np.moveaxis(array, role.axis, 0).reshape(array.shape[role.axis], -1)


def scale_channels(
    graph: Graph, layers: Sequence[Role], products: Mapping[int, np.ndarray], data: Data, rounded: Round
) -> int:
    """Make channels larger where their rounded weights matter, and smaller where they are made, in place;
    how many places there were.

    products: as of `feedback.products`. rounded: what weights [channels, K] of a layer become.
    """
    places = [
        j
        for j in channels.joints(graph, layers)
        if channels.fits(graph, j) and all(r.weights in products for r in j.readers)
    ]
    seen = channels.channel_sizes(graph.model, {j.tensor for j in places}, data, lambda a: a.mean(0))
    for joint in places:
        size = np.maximum(seen[joint.tensor].astype(np.float64), 1e-8)
        best, least = None, np.inf
        for share in _SHARES:
            factors = size**share
            factors /= np.sqrt(factors.max() * factors.min())
            factors = np.clip(factors, 1e-4, 1e4)
            off = 0.0
            for role in {r.weights: r for r in joint.readers}.values():
                rows = rows_of(graph, role)
                spread = np.tile(factors, rows.shape[1] // len(factors))
                after = rounded(role, (rows * spread).astype(np.float32)) / spread
                off += lost(rows, after, products[role.weights])
            if off < least:
                best, least = factors, off
        channels.scale(graph, joint, best)
    return len(places)
