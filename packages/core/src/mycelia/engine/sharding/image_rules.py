"""Rules of convolutions, pools and batch normalization: batches and channels are divided, spatial axes are
whole.
"""

from __future__ import annotations

from mycelia.engine.base import dtypes
from mycelia.engine.ir.graph import Node
from mycelia.engine.sharding.rules import Axes, Rule, rule

# ---- convolutions ------------------------------------------------------------------------------------------


def _convolution(node: Node, channels: int, outputs: int):
    """Axes of images of `channels` and of `outputs`, of the weights between them, and the sizes of their
    labels: "g" groups, "c" channels and "o" results of a group.
    """
    group = node.attrs["group"]
    spatial = ((),) * (node.inputs[0].type.rank - 2)
    sizes = {"g": group, "c": channels // group, "o": outputs // group}
    return (
        (("n",), ("g", "c"), *spatial), (("n",), ("g", "o"), *spatial), (("g", "o"), ("c",), *spatial), sizes,
    )  # fmt: skip


def _groups(node: Node):
    return lambda division: {"group": node.attrs["group"] // division.parts("g")}


@rule("conv")
def _conv(node: Node) -> Rule:
    x, w, b = node.inputs
    given, made, weights, sizes = _convolution(node, x.type.shape[1], w.type.shape[0])

    def emit(rewriter, division, operands):
        x, w, b = operands
        if division.mesh.index(division.atoms("c")):
            b = None  # it is added once
        return rewriter.emit(node.op, [x, w, b], **{**node.attrs, **_groups(node)(division)})

    bias = None if b is None else (("g", "o"),)
    return Rule([given, weights, bias], [made], sizes=sizes, emit=emit)


@rule("conv_input_grad")
def _conv_input_grad(node: Node) -> Rule:
    made, given, weights, sizes = _convolution(
        node, node.outputs[0].type.shape[1], node.inputs[0].type.shape[1]
    )
    return Rule([given, weights], [made], sizes=sizes, attrs=_groups(node))


@rule("conv_weight_grad")
def _conv_weight_grad(node: Node) -> Rule:
    x, dy = node.inputs
    given, made, weights, sizes = _convolution(node, x.type.shape[1], dy.type.shape[1])
    return Rule([given, made], [weights], sizes=sizes, attrs=_groups(node))


# ---- pools -------------------------------------------------------------------------------------------------


@rule(
    "max_pool", "max_pool_index", "max_pool_grad", "avg_pool", "avg_pool_grad", "pool_take", "pool_scatter",
    "adaptive_max_pool", "adaptive_max_pool_index", "adaptive_avg_pool", "adaptive_avg_pool_grad",
)  # fmt: skip
def _pool(node: Node) -> Rule:
    spatial = ((),) * (node.inputs[0].type.rank - 2)
    axes = (("n",), *spatial, ("c",)) if _is_last(node) else (("n",), ("c",), *spatial)
    return Rule([axes] * len(node.inputs), [axes] * len(node.outputs))


def _is_last(node: Node) -> bool:
    return node.attrs.get("data_format") == "NHWC"


# ---- batch normalization -----------------------------------------------------------------------------------


def _normalized(node: Node, place: int) -> tuple[Axes, Axes, tuple[int, ...]]:
    """Axes of the images at `place` and of the numbers of channels, and the axes that statistics are taken
    over.
    """
    rank = node.inputs[place].type.rank
    channel = rank - 1 if _is_last(node) else 1
    others = tuple(i for i in range(rank) if i != channel)
    return tuple(("c",) if i == channel else (i,) for i in range(rank)), (("c",),), others


@rule("batch_norm_infer")
def _batch_norm_infer(node: Node) -> Rule:
    images, channels, _ = _normalized(node, 0)
    return Rule([images, *[channels] * 4], [images])


class _Statistics:
    """Sums over the batch of all ranks, and numbers of channels beside images."""

    def __init__(self, rewriter, division, images, others: tuple[int, ...]) -> None:
        self._rewriter, self._others = rewriter, others
        self._group = rewriter.group(division.atoms(*others))
        shape = images.type.shape
        self._beside = tuple(1 if i in others else n for i, n in enumerate(shape))
        self.count = division.parts(*others)
        for i in others:
            self.count *= shape[i]

    def wide(self, value):
        return value if value.type.dtype.itemsize >= 4 else self._cast(value, dtypes.float32)

    def like(self, value, other):
        return self._cast(value, other.type.dtype)

    def _cast(self, value, dtype):
        return value if value.type.dtype is dtype else self._rewriter.one("cast", [value], dtype=dtype)

    def number(self, value, like):
        return self._rewriter.number(value, like.type.dtype)

    def beside(self, numbers):
        """Numbers of channels, to be broadcast to the images."""
        return self._rewriter.one("reshape", [numbers], shape=self._beside)

    def total(self, images):
        """The sum of each channel over all ranks."""
        own = self._rewriter.one("sum", [images], dim=self._others)
        return self._rewriter.one("all_reduce_sum", [own], reduction="sum", group=self._group)

    def mean(self, images):
        total = self.total(images)
        return self._rewriter.one("div", [total, self.number(self.count, total)])


@rule("batch_norm_train")
def _batch_norm_train(node: Node) -> Rule:
    """The batch is that of all ranks, as one process has it."""
    images, channels, others = _normalized(node, 2)

    def emit(rewriter, division, operands):
        if division.parts(*others) == 1:
            return rewriter.emit(node.op, operands, **node.attrs)
        mean, variance, x, scale, bias = operands
        one, made = rewriter.one, _Statistics(rewriter, division, x, others)
        wide = made.wide(x)
        batch_mean = made.mean(wide)
        shifted = one("sub", [wide, made.beside(batch_mean)])
        batch_variance = made.mean(one("mul", [shifted, shifted]))
        inv_std = one("rsqrt", [one("add", [batch_variance, made.number(node.attrs["epsilon"], wide)])])
        factor = made.beside(one("mul", [inv_std, made.like(scale, inv_std)]))
        y = one("add", [one("mul", [shifted, factor]), made.beside(made.like(bias, inv_std))])
        correction = made.number(made.count / max(1, made.count - 1), wide)

        def moved(running, batch):
            step = one("sub", [made.like(batch, running), running])
            return one("add", [running, one("mul", [step, made.number(node.attrs["momentum"], running)])])

        return [
            moved(mean, batch_mean), moved(variance, one("mul", [batch_variance, correction])),
            made.like(y, x), made.like(batch_mean, mean), made.like(inv_std, mean),
        ]  # fmt: skip

    results = [channels, channels, images, channels, channels]
    return Rule([channels, channels, images, channels, channels], results, emit=emit, is_reduced=True)


@rule("batch_norm_grad")
def _batch_norm_grad(node: Node) -> Rule:
    images, channels, others = _normalized(node, 0)

    def emit(rewriter, division, operands):
        if division.parts(*others) == 1:
            return rewriter.emit(node.op, operands, **node.attrs)
        dy, x, scale, batch_mean, inv_std = operands
        one, made = rewriter.one, _Statistics(rewriter, division, x, others)
        wide = made.wide(dy)
        mean, deviation = made.like(batch_mean, wide), made.like(inv_std, wide)
        x_hat = one("mul", [one("sub", [made.wide(x), made.beside(mean)]), made.beside(deviation)])
        d_bias, d_scale = made.total(wide), made.total(one("mul", [wide, x_hat]))
        count = made.number(made.count, wide)
        inner = one("sub", [wide, made.beside(one("div", [d_bias, count]))])
        inner = one("sub", [inner, one("mul", [x_hat, made.beside(one("div", [d_scale, count]))])])
        factor = made.beside(one("mul", [made.like(scale, wide), deviation]))
        d_x = one("mul", [factor, inner])
        return [made.like(d_x, x), made.like(d_scale, scale), made.like(d_bias, scale)]

    given = [images, images, channels, channels, channels]
    return Rule(given, [images, channels, channels], emit=emit, is_reduced=True)
