"""ONNX convolutions and pools, with channels first and one to three spatial dimensions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia.ops.define import find
from mycelia_lite.converter.errors import Code
from mycelia_lite.converter.importers.onnx import run_time
from mycelia_lite.converter.importers.onnx.calls import (
    Call,
    along,
    as_tensor,
    cast,
    is_number,
    known_shape,
    larger,
    operator,
    scalar,
    shape_of,
)
from mycelia_lite.converter.importers.onnx.sizes import objects, value_of
from mycelia_lite.converter.runtime_op import OPEN, at_run_time, conv_transpose

_conv_op, _conv_input_grad, _max_pool_op, _max_pool_index, _avg_pool_op = map(
    find, ("conv", "conv_input_grad", "max_pool", "max_pool_index", "avg_pool")
)


def _ints(call: Call, name: str, rank: int, default: int) -> tuple[int, ...]:
    """An attribute with one entry for each spatial dimension (`rank`)."""
    values = tuple(call.get(name) or (default,) * rank)
    if len(values) != rank:
        why = f"attribute '{name}' is {list(values)}, but there are {rank} spatial dimensions"
        raise call.misfit(why, Code.INVALID_OP_ATTR)
    return values


def _spatial(call: Call, x: Any) -> int:
    rank = x.ndim - 2
    if rank < 1:
        raise call.misfit(f"an input of {x.ndim} axes has no spatial dimensions")
    if rank > 3:
        raise call.fail(f"an input of {x.ndim} axes: 1 to 3 spatial dimensions can be imported")
    return rank


def _pads(call: Call, x: Any, spans: tuple, strides: tuple) -> tuple[int, ...]:
    """All begins, then all ends, as `auto_pad` wants them."""
    mode = call.choice("auto_pad", "NOTSET", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    rank = len(spans)
    given = tuple(call.get("pads") or (0,) * (2 * rank))
    if len(given) != 2 * rank or min(given) < 0:
        raise call.attribute("pads", f"must have {2 * rank} entries of 0 or more")
    if mode == "NOTSET":
        return given
    if mode == "VALID":
        return (0,) * (2 * rank)
    call.same = mode == "SAME_UPPER"
    sizes = known_shape(call, x, range(2, x.ndim)) if max(strides) > 1 else (0,) * x.ndim
    less, more = [], []
    for n, span, stride in zip(sizes[2:], spans, strides):
        total = max((math.ceil(n / stride) - 1) * stride + span - n, 0) if max(strides) > 1 else span - 1
        less.append(total // 2)
        more.append(total - total // 2)
    return (*less, *more) if mode == "SAME_UPPER" else (*more, *less)


def _same_of_open(call: Call, x: Any, spans: tuple, strides: tuple, fill: float) -> Any:
    """x with the SAME padding of open sizes around it, if there is any with this stride; else None."""
    sizes = shape_of(x)[2:]
    mode = call.get("auto_pad", "NOTSET")
    if not mode.startswith("SAME") or max(strides) == 1 or all(map(is_number, sizes)):
        return None
    less, more = [], []
    for n, span, stride in zip(sizes, spans, strides):
        total = larger((n + (stride - 1)) // stride * stride + (span - stride) - n, 0)
        less.append(total // 2)
        more.append(total - total // 2)
    begin, end = (less, more) if mode == "SAME_UPPER" else (more, less)
    pads = as_tensor(value_of(objects([0, 0, *begin, 0, 0, *end])))
    return run_time.pad(call, x, pads, cast(ms.Tensor(fill), x.dtype), None, "constant")


def _spans(kernel: tuple, dilations: tuple) -> tuple[int, ...]:
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations))


def _kernel_of(call: Call, weight: Any) -> tuple[int, ...]:
    kernel = known_shape(call, weight)[2:]
    if tuple(call.get("kernel_shape") or kernel) != kernel:
        raise call.attribute("kernel_shape", f"the weights have {list(kernel)}")
    return kernel


@operator("Conv")
def convolved(call, x, weight, bias=None):
    rank = _spatial(call, x)
    kernel = _kernel_of(call, weight)
    strides, dilations = _ints(call, "strides", rank, 1), _ints(call, "dilations", rank, 1)
    padded = _same_of_open(call, x, _spans(kernel, dilations), strides, 0.0)
    pads = (0,) * (2 * rank) if padded is not None else _pads(call, x, _spans(kernel, dilations), strides)
    x = x if padded is None else padded
    return _conv_op(x, weight, bias, stride=strides, pad=pads, dilation=dilations, group=call.get("group", 1))


@operator("ConvTranspose")
def _conv_transpose(call, x, weight, bias=None):
    rank = _spatial(call, x)
    kernel = _kernel_of(call, weight)
    strides, dilations = _ints(call, "strides", rank, 1), _ints(call, "dilations", rank, 1)
    extra = _ints(call, "output_padding", rank, 0)
    spans = _spans(kernel, dilations)
    mode = call.choice("auto_pad", "NOTSET", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    wanted = call.get("output_shape")
    if wanted is None and rank <= 2 and not all(map(is_number, shape_of(x)[2:])):
        return _open_conv_transpose(call, x, weight, bias, mode, strides, dilations, spans, extra)
    sizes = known_shape(call, x, range(2, x.ndim))[2:]
    full = [(n - 1) * s + span + e for n, s, span, e in zip(sizes, strides, spans, extra)]
    if wanted is not None:
        wanted = list(wanted)[-rank:]
    elif mode.startswith("SAME"):
        wanted = [n * s for n, s in zip(sizes, strides)]
    if wanted is None:
        pads = _pads(call, x, spans, strides)
        wanted = [n - pads[d] - pads[rank + d] for d, n in enumerate(full)]
    else:
        call.get("pads")  # not used when the sizes of the result are given
        pads = _halved([max(n - w, 0) for n, w in zip(full, wanted)], mode)
    if min(wanted) < 1:
        raise call.fail(f"pads {list(pads)} leave a result of sizes {wanted}")
    pads, cut = _cut(pads, spans)
    size = tuple(n + cut[d] + cut[rank + d] for d, n in enumerate(wanted))
    y = _conv_input_grad(
        x, weight, size=size, stride=strides, pad=pads, dilation=dilations, group=call.get("group", 1)
    )
    y = y if bias is None else ops.add(y, along(bias, 1, x.ndim))
    if not any(cut):
        return y
    call.fixed = True
    return y[(slice(None),) * 2 + tuple(slice(c, c + n) for c, n in zip(cut, wanted))]


def _cut(pads: Sequence[int], spans: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The pads of a transposed convolution that end within its kernel, and what more its result loses."""
    inner = tuple(min(p, s - 1) for p, s in zip(pads, (*spans, *spans)))
    return inner, tuple(p - i for p, i in zip(pads, inner))


def _halved(total: Sequence[int], mode: str) -> tuple[int, ...]:
    """Pads of which the sums are given; of an odd one the smaller half is in front with SAME_UPPER."""
    half = [t // 2 for t in total]
    rest = [t - h for t, h in zip(total, half)]
    return (*half, *rest) if mode == "SAME_UPPER" else (*rest, *half)


def _open_conv_transpose(call, x, weight, bias, mode, strides, dilations, spans, extra):
    """The transposed convolution of images of any size."""
    if mode.startswith("SAME"):  # the result is so many times as large as the stride says
        total = [max(span + e - s, 0) for span, e, s in zip(spans, extra, strides)]
        pads = _halved(total, mode)
        extra = [s - span + t for s, span, t in zip(strides, spans, total)]
    else:
        pads = _pads(call, x, spans, strides)
    if min(extra) < 0:
        raise call.fail(f"a result that is shorter than its padding by {[-e for e in extra]}")
    pads, cut = _cut(pads, spans)
    row = len(spans) == 1  # an image of one row
    if row:
        x, weight = ops.expand_dims(x, 2), ops.expand_dims(weight, 2)
        strides, dilations, extra = (1, *strides), (1, *dilations), (0, *extra)
        pads = (0, pads[0], 0, pads[1])
    y = conv_transpose(
        x, weight, stride=tuple(strides), pad=tuple(pads), dilation=tuple(dilations), extra=tuple(extra),
        group=call.get("group", 1),
    )  # fmt: skip
    y = y if bias is None else ops.add(y, along(bias, 1, 4))
    if row:
        shape = run_time.sizes(y)
        shape = ops.gather(shape, ms.Tensor([0, 1, 3]), 0)
        y = at_run_time("Reshape", (y, shape), [(y.dtype, (shape_of(y)[0], shape_of(y)[1], OPEN))])
    if not any(cut):
        return y
    ends = [-c if c else np.iinfo(np.int64).max for c in cut[len(spans) :]]
    axes = np.arange(2, y.ndim)
    starts, ends, axes = (ms.Tensor(np.array(v)) for v in (cut[: len(spans)], ends, axes))
    return run_time.slice_of(call, y, starts, ends, axes, None)


def _steps(call: Call, x: Any) -> tuple[tuple[int, ...], ...]:
    """Kernel, strides and dilations of a pool."""
    rank = _spatial(call, x)
    kernel = tuple(call.need("kernel_shape"))
    if len(kernel) != rank:
        raise call.attribute("kernel_shape", f"there are {rank} spatial dimensions")
    return kernel, _ints(call, "strides", rank, 1), _ints(call, "dilations", rank, 1)


def _window(call: Call, x: Any, padded: bool = False) -> dict[str, Any]:
    """The windows of a pool; `padded`: x has its padding already."""
    kernel, strides, dilations = _steps(call, x)
    pads = (0,) * (2 * len(kernel)) if padded else _pads(call, x, _spans(kernel, dilations), strides)
    ceil = bool(call.get("ceil_mode", 0)) and call.get("auto_pad", "NOTSET") == "NOTSET"
    return dict(kernel=kernel, stride=strides, pad=pads, dilation=dilations, ceil=ceil)


@operator("MaxPool")
def _max_pool(call, x):
    call.choice("storage_order", 0, (0, 1))
    dtype = x.dtype
    kernel, strides, dilations = _steps(call, x)
    lowest = -math.inf if dtype.is_floating else np.iinfo(dtype.np).min
    padded = _same_of_open(call, x, _spans(kernel, dilations), strides, lowest)
    how = _window(call, x, padded is not None)
    x = x if padded is None else padded
    if not dtype.is_floating:  # padding is minus infinity; these types are exact in float32
        if np.dtype(dtype.np).itemsize > 2:
            raise call.fail(
                f"windows of {dtype}: floating numbers and integers of 8 and 16 bits are imported"
            )
        x = cast(x, ms.float32)
    y = cast(_max_pool_op(x, **how), dtype)
    if not call.wants(1):
        return y
    n, c, *size = known_shape(call, x)
    call.fixed = True
    index = _max_pool_index(x, **how)
    if call.get("storage_order", 0):  # places count along the first axis of an image first
        count, places = 1, ops.zeros_like(index)
        for n_d, step in zip(size, np.cumprod([1, *size[:0:-1]])[::-1].tolist()):
            along_axis = ops.floor_mod(ops.floor_div(index, scalar(step, index)), scalar(n_d, index))
            places = ops.add(places, ops.mul(along_axis, scalar(count, index)))
            count *= n_d
        index = places
    planes = np.arange(n * c, dtype=np.int64).reshape(n, c, *[1] * len(size)) * int(np.prod(size))
    return y, ops.add(index, ms.Tensor(planes))


def _sums(call: Call, x: Any, how: dict[str, Any]) -> tuple[Any, list[tuple]]:
    """Sums of windows with gaps between their elements, and how many elements lie inside along each axis.

    Of the second there are two for each axis: without the padding and with it.
    """
    channels, *size = known_shape(call, x, range(1, x.ndim))[1:]
    call.fixed = True
    kernel, stride, pad, dilation = (how[name] for name in ("kernel", "stride", "pad", "dilation"))
    rank, ends, counts = len(kernel), [], []
    for d, (n, k, s, gap) in enumerate(zip(size, kernel, stride, dilation)):
        span, whole = (k - 1) * gap + 1, n + pad[d] + pad[d + rank]
        count = (whole - span) // s + 1
        if how["ceil"] and (whole - span) % s and count * s < n + pad[d]:
            count += 1
        if whole < span:
            raise call.fail(f"a window of span {span} over {whole} elements with their padding")
        ends.append(max(pad[d + rank], (count - 1) * s + span - n - pad[d]))
        at = np.arange(count)[:, None] * s + np.arange(k) * gap - pad[d]
        counts.append((((at >= 0) & (at < n)).sum(1), (at < n + pad[d + rank]).sum(1)))
    ones = ms.Tensor(np.ones((channels, 1, *kernel), x.dtype.np))
    pads = (*pad[:rank], *ends)
    return _conv_op(x, ones, None, stride=stride, pad=pads, dilation=dilation, group=channels), counts


@operator("AveragePool")
def _average_pool(call, x):
    how = _window(call, x)
    if set(how["dilation"]) != {1}:
        padded = call.get("count_include_pad", 0)
        total, counts = _sums(call, x, how)
        elements = functools.reduce(np.multiply.outer, [c[1 if padded else 0] for c in counts])
        return ops.div(total, ms.Tensor(np.maximum(elements, 1).astype(x.dtype.np)))
    how.pop("dilation")
    return _avg_pool_op(x, **how, count_include_pad=bool(call.get("count_include_pad", 0)))


@operator("LpPool")
def _lp_pool(call, x):
    """The root of the sum of powers; the padding adds nothing."""
    p = call.get("p", 2)
    how = _window(call, x)
    exponent = cast(ms.Tensor(float(p)), x.dtype)
    if set(how["dilation"]) != {1} or how["ceil"]:
        total, _ = _sums(call, ops.pow(ops.abs(x), exponent), how)
        return ops.pow(total, cast(ms.Tensor(1.0 / p), x.dtype))
    how.pop("dilation")
    mean = _avg_pool_op(ops.pow(ops.abs(x), exponent), **how, count_include_pad=True)
    total = ops.mul(mean, cast(ms.Tensor(float(math.prod(how["kernel"]))), x.dtype))
    return ops.pow(total, cast(ms.Tensor(1.0 / p), x.dtype))


@operator("GlobalAveragePool")
def _global_average_pool(call, x):
    return ops.mean(x, tuple(range(2, x.ndim)), True)


@operator("GlobalMaxPool")
def _global_max_pool(call, x):
    return ops.amax(x, tuple(range(2, x.ndim)), True)


def _blocks(call: Call, x: Any) -> tuple[int, tuple[int, ...]]:
    size = call.need("blocksize")
    if x.ndim != 4:
        raise call.misfit(f"an input of {x.ndim} axes, 4 are needed")
    return size, known_shape(call, x, (1,))


@operator("DepthToSpace")
def _depth_to_space(call, x):
    b, (n, c, h, w) = _blocks(call, x)
    if call.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        turned = ops.transpose(ops.reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        turned = ops.transpose(ops.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return ops.reshape(turned, (n, c // b**2, h * b, w * b))


@operator("SpaceToDepth")
def _space_to_depth(call, x):
    b, (n, c, h, w) = _blocks(call, x)
    if any(is_number(n) and n % b for n in (h, w)):
        raise call.attribute("blocksize", f"the image has {h} times {w} pixels")
    turned = ops.transpose(ops.reshape(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return ops.reshape(turned, (n, c * b * b, h // b, w // b))
