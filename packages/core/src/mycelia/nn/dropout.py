"""Layers that set random elements or channels to zero while training."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.engine.base.dtypes import float32
from mycelia.nn.cell import Cell


class Dropout(Cell):
    """In training, zero each element with probability `p` and scale the rest by ``1 / (1 - p)``.

    `keep_prob` is the old name for ``1 - p``. Raises ValueError for a probability outside [0, 1).
    """

    @ignored.arguments(dtype="the result has the dtype of the input")
    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype=float32):
        super().__init__()
        if p is None:
            if (
                isinstance(keep_prob, bool)
                or not isinstance(keep_prob, (int, float))
                or not 0 < keep_prob <= 1
            ):
                raise errors.value_error("Dropout", f"keep_prob must be in (0, 1], but got {keep_prob!r}")
            self._shown = f"keep_prob={keep_prob}"
            p = 1 - keep_prob
        else:
            if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p < 1:
                raise errors.value_error("Dropout", f"p must be in [0, 1), but got {p!r}")
            self._shown = f"p={p}"
        self.p, self.keep_prob = float(p), keep_prob

    def construct(self, x):
        from mycelia.engine.ops.random.random import dropout

        return dropout(x, self.p, self.training) if self.training and self.p > 0 else x

    def extend_repr(self):
        return self._shown


class _ChannelDropout(Cell):
    """In training, zero whole channels with probability `p` and scale the rest by ``1 / (1 - p)``."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        owner = type(self).__name__
        if not isinstance(p, float):
            raise errors.type_error(owner, f"p must be a float, but got {p!r}")
        if not 0 <= p <= 1:
            raise errors.value_error(owner, f"p must be in [0, 1], but got {p}")
        self.p = p

    def construct(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0.0
        from mycelia.engine.ops.random import random

        return getattr(random, self._function)(x, self.p)

    def extend_repr(self):
        return f"p={1 - self.p}"  # MindSpore prints how many it keeps


class Dropout1d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, L] or [C, L] -> same.
    Errors: ValueError for p outside [0, 1].
    """

    _function = "dropout1d"

    def extend_repr(self):
        return ""


class Dropout2d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, H, W] -> same. Errors: ValueError for p outside [0, 1]."""

    _function = "dropout2d"


class Dropout3d(_ChannelDropout):
    """Dropout of whole channels. Shapes: [N, C, D, H, W] -> same. Errors: ValueError for p outside [0, 1]."""

    _function = "dropout3d"
