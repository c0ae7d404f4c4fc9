"""Padding: constants around a tensor, or its own elements mirrored and repeated."""

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.ir.symint import SymInt
from mycelia.engine.ops import layout_rules as _layout
from mycelia.engine.ops.arrays.shape import as_ints, shaped_by
from mycelia.engine.ops.define import op
from mycelia.engine.ops.late import ops

# ----------------------------------------------------------------------------------------------- padding


def _padded(shape, pads, value):
    if len(pads) != 2 * len(shape):
        raise ValueError(f"pads needs two numbers for each axis of shape {shape}, but got {pads}")
    result = tuple(n if n == -1 else n + a + b for n, a, b in zip(shape, pads[::2], pads[1::2]))
    if any(m < 0 and n != -1 for m, n in zip(result, shape)):
        raise ValueError(f"padding {pads} takes away more than there is of shape {shape}")
    return result


@op(infer=shaped_by(_padded), layout=_layout.images((0,), (0,)), moves=True)
def _pad_constant(x, *, pads: "ints", value: "float" = 0.0):
    """Surround with `value`: `pads` is (before, after) of each axis from the first on;
    negative numbers cut away.

    Shapes: [.., n, ..] -> [.., before + n + after, ..].  dtypes: any.
    """
    before, after = pads[::2], pads[1::2]
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, a, b in zip(x.shape, before, after))
    return np.pad(x[kept], [(max(a, 0), max(b, 0)) for a, b in zip(before, after)], constant_values=value)


@_pad_constant.vjp
def _pad_constant(ct, *, pads):
    return _pad_constant(ct, tuple(-p for p in pads))


@_pad_constant.samples
def _pad_constant(rand):
    yield rand(2, 3), dict(pads=(0, 1, 2, 0), _dtypes=("int32", "bool", "float64", "float16"))
    yield rand(4, 3), dict(pads=(-1, -2, 1, 1), value=2.5)
    yield rand(1, 2, 3, 4), dict(pads=(0, 0, 0, 0, 1, 1, 2, 1))
    yield rand(3), dict(pads=(0, 0))
    yield rand(0, 2), dict(pads=(2, 1, 0, 0), value=-1.0)
    yield rand(3), dict(pads=(-2, -1))


@_pad_constant.batch
def _pad_constant(call):
    return call.run(call.operands, pads=(0, 0, *call.attrs["pads"]))


@_pad_constant.layout
def _pad_constant(rewriter, node):
    pads = node.attrs["pads"]
    pairs = _layout.nhwc_shape([pads[2 * i : 2 * i + 2] for i in range(4)])
    turned = sum(map(tuple, pairs), ())
    return _layout.same_attributes(rewriter, node, [rewriter.last(node.inputs[0])], pads=turned)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
_PAD_MODES |= {"symmetric": "symmetric", "circular": "wrap"}


def pad(input_x, padding, mode="constant", value=None):
    """Pad the last axes: `padding` is (before, after) of the last axis, then of the one before it, and so on.

    Modes: constant (`value`, 0 if None; negative numbers cut away), reflect (without repeating the edge),
    symmetric (repeating it), replicate or edge, circular.  Shapes: [.., n] -> [.., before + n + after].
    Errors: ValueError for an odd number of entries, an unknown mode,
    or padding wider than the input has elements.
    """
    padding = as_ints(padding, "padding")
    if len(padding) % 2:
        raise errors.value_error(
            f"For 'pad', the size of padding must be divisible by 2, but got {len(padding)}"
        )
    if len(padding) > 2 * input_x.ndim:
        raise errors.value_error(
            f"For 'pad', padding {padding} names more axes than an input of shape {input_x.shape} has"
        )
    if mode not in _PAD_MODES:
        raise errors.value_error(f"For 'pad', mode must be one of {', '.join(_PAD_MODES)}, but got {mode!r}")
    pairs = [(0, 0)] * (input_x.ndim - len(padding) // 2)
    pairs += [(padding[i], padding[i + 1]) for i in range(len(padding) - 2, -1, -2)]
    if mode == "constant":
        return _pad_constant(
            input_x, tuple(p for pair in pairs for p in pair), value=0.0 if value is None else value
        )
    if value is not None:
        raise errors.value_error(f"For 'pad', value must be None in mode {mode!r}, but got {value}")
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            input_x = _pad_from_itself(input_x, axis, before, after, mode)
    return input_x


def _pad_from_itself(x, axis, before, after, mode):
    from mycelia.engine.ops.arrays.gathering import gather, take_constant

    n = x.shape[axis]
    reach = {"reflect": n - 1, "symmetric": n, "circular": n}.get(mode, max(before, after))
    if max(before, after) > reach or (n == 0 and before + after > 0):
        raise errors.value_error(
            f"For 'pad', mode {mode!r} can pad axis {axis} of size {n} by at most {reach}, "
            f"but got ({before}, {after})"
        )
    if type(n) is SymInt and min(before, after) >= 0:
        return gather(x, _mirrored(n, before, after, mode), axis)
    kept = np.arange(max(-before, 0), n - max(-after, 0))
    return take_constant(x, np.pad(kept, (max(before, 0), max(after, 0)), mode=_PAD_MODES[mode]), axis)


def _mirrored(n, before, after, mode):
    """The places of an axis of `n` elements that a padded one takes, by ops, for sizes left open."""
    i = ops.arange(before + n + after) - before
    if mode == "circular":
        return ops.where(i < 0, i + n, ops.where(i >= n, i - n, i))
    if mode in ("replicate", "edge"):
        return ops.minimum(ops.maximum(i, 0), n - 1)
    again = int(mode == "symmetric")  # whether the edge is repeated
    i = ops.maximum(i, -i - again)
    return ops.minimum(i, 2 * n - 2 + again - i)


__all__ = ["pad"]
