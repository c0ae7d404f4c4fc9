"""Products and channels-last convolutions on weights of 1 to 8 bits, decoded as they are multiplied.

A weight is ``(q - zero) * scale`` with integers q of `bits` bits, and a scale and a zero for each output or
for each run of `group` weights of an output. These forms are for converters: they have no gradient, and no
public name.
"""

import math
from functools import partial

import numpy as np

from mycelia.engine.base import dtypes, errors
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops import cost as _cost
from mycelia.engine.ops.define import op
from mycelia.engine.ops.lowered.channels_last import conv_last, conv_pack
from mycelia.engine.ops.lowered.packed import PANEL, check_epilogue, need_float32, np_activated, padded
from mycelia.engine.ops.nn_ops.conv_geometry import full_attributes, output_size

UNIT = 32  # weights of an output that lie together: `bits` words
MOST_BITS = 8


def low_bit_size(bits, channels, depth):
    """Words of 32 bits of the pack of `depth` weights for each of `channels` outputs."""
    return -(-depth // UNIT) * bits * padded(channels)


def np_fields(stream, bits, count):
    """`count` unsigned fields of `bits` bits of an array of bytes, the lowest bits first."""
    flat = np.unpackbits(stream, count=count * bits, bitorder="little").reshape(count, bits)
    return (flat.astype(np.int32) << np.arange(bits, dtype=np.int32)).sum(1, dtype=np.int32)


def np_weights(pack, scale, zero, bits, channels, depth, group):
    """[channels, depth] of float32 from a pack."""
    units = -(-depth // UNIT)
    words = pack.reshape(padded(channels) // PANEL, units, bits, PANEL).transpose(0, 3, 1, 2)
    stream = np.ascontiguousarray(words).astype("<i4").view(np.uint8)
    q = np_fields(stream, bits, padded(channels) * units * UNIT).reshape(padded(channels), -1)
    q = (q[:channels, :depth] ^ (1 << (bits - 1))) - (1 << (bits - 1))
    spread = np.zeros(depth, np.int64) if group == 0 else np.arange(depth) // group
    q = q.astype(np.float32) if zero is None else q.astype(np.float32) - zero[spread].T
    return q * scale[spread].T


def _check(x, w, scale, zero, bits, channels, depth, group):
    """TypeError or ValueError naming what does not fit."""
    need_float32(x=x, scale=scale, zero=zero)
    _check_bits(bits)
    if w.dtype is not dtypes.int32:
        raise errors.dtype_error(f"w must be int32, but is {w.dtype.name}")
    size = low_bit_size(bits, channels, depth)
    if w.shape != (size,):
        raise errors.value_error(
            f"w must be the pack of {channels} x {depth} weights of {bits} bits: [{size}], "
            f"got {list(w.shape)}"
        )
    if group < 0 or group % UNIT:
        raise errors.value_error(f"group must be 0 or a multiple of {UNIT}, got {group}")
    groups = 1 if group == 0 else -(-depth // group)
    for name, t in (("scale", scale), ("zero", zero)):
        if t is not None and t.shape != (groups, channels):
            raise errors.value_error(f"{name} must be {[groups, channels]}, got {list(t.shape)}")


def _check_bits(bits):
    if not 1 <= bits <= MOST_BITS:
        raise errors.value_error(f"bits must be in [1, {MOST_BITS}], got {bits}")


@op(name="low_bit_pack", nondiff=True, cost=0)
def low_bit_pack(
    codes,
    *, bits: "int", channels: "int", depth: "int", transpose_w: "bool" = True, is_signed: "bool" = False,
):  # fmt: skip
    """Integers of few bits in the form that `low_bit_linear` and `low_bit_conv_last` read.

    codes: fields of `bits` bits, those of lower places in the lower bits of a byte, of a matrix
    [channels, depth] (of images [O, kh, kw, I]), or [depth, channels] without `transpose_w`. A field c is the
    integer c less half of 2^bits, or with `is_signed` the integer itself as a two's complement.
    Shapes: codes [ceil(channels * depth * bits / 8)] -> [ceil(depth / 32) * bits * padded(channels)].
    dtypes: uint8 -> int32.  Errors: TypeError, ValueError for others.
    """
    fields = np_fields(codes, bits, channels * depth)
    fields = fields if is_signed else fields ^ (1 << (bits - 1))
    fields = fields.reshape(channels, depth) if transpose_w else fields.reshape(depth, channels).T
    units = -(-depth // UNIT)
    whole = np.zeros((padded(channels), units * UNIT), np.int32)
    whole[:channels, :depth] = fields
    flat = whole[:, :, None] >> np.arange(bits, dtype=np.int32) & 1
    stream = np.packbits(flat.astype(np.uint8).reshape(-1), bitorder="little")
    words = stream.view("<i4").reshape(padded(channels) // PANEL, PANEL, units, bits).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(words).reshape(-1).astype(np.int32)


@low_bit_pack.infer
def low_bit_pack(codes, *, bits, channels, depth, transpose_w, is_signed):
    if codes.dtype is not dtypes.uint8:
        raise errors.dtype_error(f"codes must be uint8, but is {codes.dtype.name}")
    _check_bits(bits)
    if channels < 0 or depth < 0:
        raise errors.value_error(f"channels and depth must be 0 or more, got {channels}, {depth}")
    size = -(-channels * depth * bits // 8)
    if codes.shape != (size,):
        raise errors.value_error(
            f"codes must be [{size}] for {channels} x {depth} fields of {bits} bits, got {list(codes.shape)}"
        )
    return TensorType(dtypes.int32, (low_bit_size(bits, channels, depth),))


@low_bit_pack.samples
def low_bit_pack(rand):
    yield rand.ints(0, 256, (-(-5 * 35 * 3 // 8),), "uint8"), dict(bits=3, channels=5, depth=35)
    yield rand.ints(0, 256, (17 * 64,), "uint8"), dict(bits=8, channels=17, depth=64, is_signed=True)
    turned = dict(bits=4, channels=33, depth=9, transpose_w=False)
    yield rand.ints(0, 256, (33 * 9 // 2 + 1,), "uint8"), turned
    yield rand.ints(0, 256, (0,), "uint8"), dict(bits=1, channels=0, depth=4)


@op(name="low_bit_linear", nondiff=True)
def low_bit_linear(
    x, w, scale, zero: "tensor?" = None, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", bits: "int", group: "int" = 0,
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Fully connected layer on weights of few bits: ``activation(x @ w.T + b + residual)``.

    Shapes: x [..., in], w what `low_bit_pack` made, scale and zero [groups, out] with one group if `group` is
    0, else ceil(in / group), b [out], residual like the result -> [..., out] with out `channels`.
    dtypes: w int32, others float32.
    Errors: TypeError for other dtypes; ValueError if the pack, scales or the epilogue's shapes do not fit, or
    `group` is no multiple of 32.
    """
    y = x @ np_weights(w, scale, zero, bits, channels, x.shape[-1], group).T
    y = y if b is None else y + b
    return np_activated(y if residual is None else y + residual, activation)


@low_bit_linear.infer
def low_bit_linear(x, w, scale, zero, b, residual, *, channels, bits, group, activation):
    if x.rank < 1 or x.shape[-1] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [..., in] with a known in, got {x}, and channels {channels}")
    _check(x, w, scale, zero, bits, channels, x.shape[-1], group)
    y = TensorType(x.dtype, (*x.shape[:-1], channels))
    check_epilogue(y, b, residual)
    return y


def _codes(rand, bits, channels, depth):
    return rand.ints(0, 256, (-(-channels * depth * bits // 8),), "uint8")


def _scales(rand, bits, depth, *shape):
    return (rand.positive(*shape) + np.float32(0.5)) / np.float32(2**bits * max(1, depth) ** 0.5)


@low_bit_linear.samples
def low_bit_linear(rand):
    def sample(rows, depth, channels, bits, group=0, zero=False, b=False, residual=False, **how):
        groups = 1 if group == 0 else -(-depth // group)
        pack = partial(low_bit_pack, bits=bits, channels=channels, depth=depth)
        return (
            rand(*rows, depth), _codes(rand, bits, channels, depth),
            _scales(rand, bits, depth, groups, channels), rand(groups, channels) if zero else None,
            rand(channels) if b else None, rand(*rows, channels) if residual else None,
            dict(channels=channels, bits=bits, group=group, _prepare={1: pack}, **how),
        )  # fmt: skip

    for bits in range(1, MOST_BITS + 1):
        yield sample((1,), 70, 37, bits, zero=bits % 2 == 0, b=True)
        yield sample((9,), 70, 37, bits, zero=bits % 2 == 1, residual=True)
    yield sample((1,), 256, 64, 4, group=32)
    yield sample((2, 7), 300, 20, 4, group=128, zero=True, b=True, activation="relu")
    yield sample((), 33, 16, 2, group=32, zero=True, activation="sigmoid")
    yield sample((3,), 96, 8, 3, b=True, residual=True, activation="gelu")
    yield sample((0,), 4, 3, 4)
    yield sample((4,), 0, 3, 4, b=True)


@low_bit_linear.cost
def low_bit_linear(inputs, outputs, **_):
    return _cost.product(outputs, inputs[0].shape[-1])


@op(name="low_bit_conv_last", nondiff=True)
def low_bit_conv_last(
    x, w, scale, zero: "tensor?" = None, b: "tensor?" = None, residual: "tensor?" = None,
    *, channels: "int", bits: "int", kernel: "ints", stride: "ints" = (1, 1), pad: "ints" = (0, 0, 0, 0),
    dilation: "ints" = (1, 1),
    activation: "none|relu|relu6|hardswish|silu|sigmoid|gelu|gelu_tanh" = "none",
):  # fmt: skip
    """Channels-last convolution on weights of few bits: ``activation(conv(x, w) + b + residual)``.

    Shapes: x [N, H, W, I], w what `low_bit_pack` made of [O, kh, kw, I], scale and zero [1, O], b [O],
    residual like the result -> [N, H', W', O] with O `channels`; `pad` lists all begins, then all ends.
    dtypes: w int32, others float32.
    Errors: TypeError for other dtypes; ValueError if the pack, scales or window sizes do not fit.
    """
    weights = np_weights(w, scale, zero, bits, channels, math.prod(kernel) * x.shape[3], 0)
    first = np.ascontiguousarray(weights.reshape(channels, *kernel, x.shape[3]).transpose(0, 3, 1, 2))
    pack = conv_pack.definition.body(first, algorithm="direct", group=1, transposed=False)
    return conv_last.definition.body(
        x, pack, b, residual, channels=channels, kernel=kernel, stride=stride, pad=pad, dilation=dilation,
        group=1, algorithm="direct", activation=activation,
    )  # fmt: skip


@low_bit_conv_last.infer
def low_bit_conv_last(
    x, w, scale, zero, b, residual, *, channels, bits, kernel, stride, pad, dilation, activation
):  # fmt: skip
    if x.rank != 4 or x.shape[3] == UNKNOWN or channels < 0:
        raise errors.value_error(f"x must be [N, H, W, I] with a known I, got {x}, and channels {channels}")
    kernel, stride, pad, dilation = full_attributes(2, kernel, stride, pad, dilation)
    _check(x, w, scale, zero, bits, channels, math.prod(kernel) * x.shape[3], 0)
    size = output_size(x.shape[1:3], kernel, stride, pad, dilation)
    y = TensorType(x.dtype, (x.shape[0], *size, channels))
    check_epilogue(y, b, residual)
    return y


@low_bit_conv_last.samples
def low_bit_conv_last(rand):
    def sample(x, channels, kernel, bits, zero=False, b=False, residual=None, **how):
        depth = math.prod(kernel) * x[3]
        pack = partial(low_bit_pack, bits=bits, channels=channels, depth=depth)
        return (
            rand(*x), _codes(rand, bits, channels, depth), _scales(rand, bits, depth, 1, channels),
            rand(1, channels) if zero else None, rand(channels) if b else None,
            None if residual is None else rand(*residual),
            dict(channels=channels, kernel=kernel, bits=bits, _prepare={1: pack}, **how),
        )  # fmt: skip

    same = dict(pad=(1, 1, 1, 1))
    yield sample((2, 7, 6, 3), 5, (3, 3), 4, b=True)
    yield sample((1, 5, 7, 8), 48, (3, 3), 3, zero=True, residual=(1, 5, 7, 48), activation="relu", **same)
    yield sample((2, 8, 9, 19), 37, (3, 2), 5, b=True, stride=(2, 1), dilation=(1, 2), activation="relu6")
    yield sample((1, 4, 4, 16), 33, (1, 1), 2, zero=True, activation="silu", stride=(2, 2))
    yield sample((1, 1, 1, 64), 16, (1, 1), 8)
    yield sample((0, 5, 5, 2), 3, (3, 3), 1)


@low_bit_conv_last.cost
def low_bit_conv_last(inputs, outputs, *, kernel, **_):
    return _cost.product(outputs, math.prod(kernel) * inputs[0].shape[3])


__all__ = []
