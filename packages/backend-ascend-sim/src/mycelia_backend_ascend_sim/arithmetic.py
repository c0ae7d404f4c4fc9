"""The arithmetic of the device, written down as rules; every kernel rounds and adds by the functions below.

R1  Registers. The vector unit and the cube's accumulators hold float32. float16 and bfloat16 operands are
    widened, which is exact; int8 products are summed in int32, modulo 2^32.
R2  Rounding. A result is rounded to the dtype of its tensor once, when the task stores it: to nearest, ties
    to even, denormals kept. `flush_denormals` makes operands and results below the smallest normal number of
    their dtype a zero of their sign.
R3  Overflow. A float16 result of 65520 or more in magnitude is infinite (`INFNAN_MODE`) or 65504 of its sign
    (`SATURATION_MODE`, infinite operands too; NaN stays NaN); bfloat16 and float32 likewise at their largest
    number. Either sets the task's overflow bit, unless an operand was not finite before.
R4  Elementwise. + - * / and square root are those of IEEE 754 in float32. Any other elementwise function is
    the value of its float64 evaluation, rounded to float32.
R5  Sums of the vector unit (`tree_sum`). The terms, in row-major order of the reduced axes, are halved: with
    h the largest power of two below their number n, term h + i is added to term i; then n is h, until one is
    left. A mean is that sum times float32(1 / n).
R6  Cube (`product`). The inner axis is cut into blocks of 16, the last may be shorter. The products of a
    block are rounded to float32 (those of float16 and bfloat16 need no rounding) and summed by the halving of
    R5 with n = 16, where missing terms add nothing; block after block is added to an accumulator that begins
    as +0; a bias is added last, in float32. With `accumulate="fp16"` each block's sum, and each sum of the
    accumulator, is rounded to float16.
R7  Inner axes. A matrix product's is its own. A convolution's is (channel block, kernel row, kernel column),
    a block being 16 channels of one place; in its gradient by the images (block of output channels, kernel
    row, kernel column); in its gradient by the weights, image after image, the places in row-major order, cut
    anew for each image. Places on padding are no terms. Other axes of convolutions come as rows do.
R8  float32 operands of the cube are rounded to float16 or bfloat16 first, by `precision_mode`, or stay as
    they are; results and biases of such products are float32.
R9  Fusion. Within a fusion the parts hand float32 to one another: R2 and R3 apply to its results alone.
R10 Composed ops. Softmax, losses, normalizations and steps of optimizers are one task each: R4 and R5 in
    float32, in the order of their formulas, which `kernels.vector` has; what the vector unit hands to the
    cube, in attention, is rounded to the tensor's dtype, float32 by R8.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator

import numpy as np

from mycelia import dtypes
from mycelia.dtypes import DType

HALF_MAX = 65504.0  # the largest float16
BLOCK = 16  # terms that the cube adds at once, R6
SMALLEST_NORMAL = {dtypes.float16: 2.0**-14, dtypes.bfloat16: 2.0**-126, dtypes.float32: 2.0**-126}
LARGEST = {
    dtypes.float16: np.float32(HALF_MAX),
    dtypes.bfloat16: np.array([0x7F7F0000], np.uint32).view(np.float32)[0],
    dtypes.float32: np.finfo(np.float32).max,
}
_AT_ONCE = 1 << 17  # products held at one time: they stay in a second-level cache


def flushed(x: np.ndarray, dtype: DType) -> np.ndarray:
    """`x` with numbers that are denormal in `dtype` made zeros of their sign."""
    small = np.abs(x) < SMALLEST_NORMAL[dtype]
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if small.any() else x


def rounded(x: np.ndarray, dtype: DType, *, saturate: bool = False, flush: bool = False) -> np.ndarray:
    """float32 `x` in the numbers of `dtype` by R2 and R3: float16 as such, the others as float32."""
    if dtype is dtypes.float16:
        with np.errstate(over="ignore"):
            y = x.astype(np.float16)
    elif dtype is dtypes.bfloat16:
        y = dtypes.from_bfloat16_bits(dtypes.to_bfloat16_bits(x))
    else:
        y = x
    if saturate:
        infinite = np.isinf(y)
        if infinite.any():
            y = np.where(infinite, np.copysign(y.dtype.type(LARGEST[dtype]), y), y)
    return flushed(y, dtype) if flush else y


def toward_zero(x: np.ndarray, dtype: DType) -> np.ndarray:
    """`x` cut to `dtype` instead of rounded to nearest: a fault that `faults` can plant."""
    y = rounded(x, dtype)
    if dtype is dtypes.float32:
        return y
    beyond = np.abs(y.astype(np.float32)) > np.abs(x)
    if dtype is dtypes.float16:
        return np.where(beyond, np.nextafter(y, np.float16(0)), y)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return np.where(beyond, bits.view(np.float32), y)


def halved(terms: np.ndarray) -> np.ndarray:
    """The sum over axis 0 by the halving of R5; `terms` is overwritten. Zero where there are none."""
    n = len(terms)
    if n == 0:
        return np.zeros(terms.shape[1:], terms.dtype)
    while n > 1:
        h = 1 << (n - 1).bit_length() - 1
        np.add(terms[: n - h], terms[h:n], out=terms[: n - h])
        n = h
    return terms[0]


def tree_sum(x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
    """The sum over `axes` by R5, in the dtype of `x`."""
    axes = tuple(sorted(a % x.ndim for a in axes))
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape)) if keepdims else tuple(
        x.shape[a] for a in kept
    )  # fmt: skip
    count, others = (int(np.prod([x.shape[a] for a in which])) for which in (axes, kept))
    terms = np.array(x.transpose(*axes, *kept), order="C").reshape(count, others)
    return np.asarray(halved(terms)).reshape(shape)


def mean(x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
    """The mean over `axes` by R5; NaN where there is nothing to average."""
    count = int(np.prod([x.shape[a] for a in axes]))
    with np.errstate(all="ignore"):
        return tree_sum(x, axes, keepdims) * np.float32(np.divide(1.0, count))


class _Scratch(threading.local):
    """Memory for products, kept: fresh pages would cost as much as the products."""

    def __init__(self) -> None:
        self.products = np.empty(_AT_ONCE, np.float32)


_scratch = _Scratch()


def _block_sums(a: np.ndarray, b: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """The sums of blocks [B, lanes, M, k] and [B, lanes, k, N]: [B, M, N], until the next call.

    A lane has one product, or two that are added (k = 2).
    """
    blocks, lanes, m, k = a.shape
    shape = blocks, lanes, m, b.shape[3]
    size = math.prod(shape)
    products = (_scratch.products if size <= _AT_ONCE else np.empty(size, np.float32))[:size].reshape(shape)
    (np.multiply if k == 1 else np.matmul)(a, b, out=products)
    if mask is not None:
        products[~np.broadcast_to(mask, shape)] = 0
    n = BLOCK
    while n > 1:  # terms that are missing add nothing
        n //= 2
        if lanes > n:
            np.add(products[:, : lanes - n], products[:, n:lanes], out=products[:, : lanes - n])
            lanes = n
    return products[:, 0]


def _paired(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks [B, v, M] and [B, v, N] as lanes of the two terms that the first halving adds."""
    blocks, v, m = a.shape
    h = 1 << (v - 1).bit_length() - 1
    left, right = np.zeros((blocks, h, m, 2), np.float32), np.zeros((blocks, h, 2, b.shape[2]), np.float32)
    left[..., 0], left[:, : v - h, :, 1] = a[:, :h], a[:, h:]
    right[:, :, 0], right[:, : v - h, 1] = b[:, :h], b[:, h:]
    return left, right


def accumulate(
    total: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    *,
    half: bool = False,
    exact: bool = False,
    mask: np.ndarray | None = None,
) -> None:
    """Add products to accumulators by R6: ``total[m, n] += sum over B, v of a[B, v, m] * b[B, v, n]``.

    `a` [B, v, M] and `b` [B, v, N] are float32 with v <= 16 terms a block; `mask`, of b's shape, says which
    terms exist. `half`: sums are rounded to float16. `exact`: all are numbers of float16.
    """
    blocks, v, m = a.shape
    n = b.shape[2]
    if 0 in (blocks, v, m, n):
        return
    if exact and mask is None and v > 1:
        # Products of float16 are exact in float32: the sum of two is rounded once however it is computed, so
        # that a library of matrix products gives the first halving, in a fraction of the time.
        a, b = _paired(a, b)
    else:
        a, b = a[:, :, :, None], b[:, :, None, :]
    lanes = a.shape[1]
    columns = min(n, max(_AT_ONCE // (lanes * m), 512))
    rows = max(1, min(m, _AT_ONCE // (lanes * columns)))
    at_once = max(1, _AT_ONCE // (lanes * columns * rows))
    for left, start in itertools.product(range(0, n, columns), range(0, m, rows)):
        here = slice(left, left + columns)
        part = total[start : start + rows, here]
        for first in range(0, blocks, at_once):
            some = slice(first, first + at_once)
            masked = None if mask is None else mask[some, :, None, here]
            for block in _block_sums(a[some, :, start : start + rows], b[some, ..., here], masked):
                if half:
                    part[:] = (part + block.astype(np.float16).astype(np.float32)).astype(np.float16)
                else:
                    part += block


def blocks_of(x: np.ndarray) -> Iterator[np.ndarray]:
    """`x` [K, M] as blocks of its first axis: [K // 16, 16, M], then [1, K % 16, M] if K is no multiple."""
    whole = len(x) // BLOCK
    if whole:
        yield x[: whole * BLOCK].reshape(whole, BLOCK, -1)
    if len(x) % BLOCK:
        yield x[None, whole * BLOCK :]


def product(x: np.ndarray, y: np.ndarray, *, half: bool = False, exact: bool = False) -> np.ndarray:
    """``x @ y`` of the cube by R6: float32 [M, K] and [K, N] -> float32 [M, N]; `half`, `exact`: as
    `accumulate`.
    """
    # The longer side lies innermost, so that the vectors of the host are long; products commute exactly.
    turned = len(x) > y.shape[1]
    a, b = (y.T, x.T) if turned else (x, y)
    total = np.zeros((len(a), b.shape[1]), np.float32)
    left, right = np.ascontiguousarray(a.T), np.ascontiguousarray(b)
    for part, other in zip(blocks_of(left), blocks_of(right), strict=True):
        accumulate(total, part, other, half=half, exact=exact)
    return total.T if turned else total


def integer_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``x @ y`` of int8 or uint8 [M, K] and [K, N] in int32, modulo 2^32 (R1)."""
    # Each product is below 2^16, so that float64 adds 2^37 of them without rounding, in any order.
    exact = np.matmul(x.astype(np.float64), y.astype(np.float64))
    return exact.astype(np.int64).astype(np.int32)
