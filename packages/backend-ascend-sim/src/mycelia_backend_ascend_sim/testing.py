"""The rules of `arithmetic` once more, element by element with NumPy's scalars: what tests compare with."""

from __future__ import annotations

import itertools

import numpy as np

F32 = np.float32


def widen(x: np.ndarray) -> np.ndarray:
    return x.astype(F32)


def pairs_added(terms: list) -> np.float32:
    """R5: the upper part is added to the lower, whose length is a power of two."""
    terms = [F32(t) for t in terms]
    while len(terms) > 1:
        half = 1
        while half * 2 < len(terms):
            half *= 2
        low, high = terms[:half], terms[half:]
        terms = [F32(t + high[i]) if i < len(high) else t for i, t in enumerate(low)]
    return terms[0] if terms else F32(0)


def block_sum(terms: list) -> np.float32:
    """R6: 16 lanes, of which some may be missing (None)."""
    lanes = [*terms, *[None] * (16 - len(terms))]
    for half in (8, 4, 2, 1):
        added = []
        for a, b in zip(lanes[:half], lanes[half:], strict=True):
            present = [F32(t) for t in (a, b) if t is not None]
            added.append(
                F32(present[0] + present[1]) if len(present) == 2 else present[0] if present else None
            )
        lanes = added
    return F32(0) if lanes[0] is None else lanes[0]


def accumulated(blocks: list[list], half: bool = False) -> np.float32:
    """R6: one accumulator over blocks of terms."""
    total = F32(0)
    for block in blocks:
        part = block_sum(block)
        if half:
            total = F32(np.float16(F32(total + F32(np.float16(part)))))
        else:
            total = F32(total + part)
    return total


def cut(terms: list) -> list[list]:
    return [terms[i : i + 16] for i in range(0, len(terms), 16)]


def product(x: np.ndarray, y: np.ndarray, half: bool = False) -> np.ndarray:
    """float32 [M, K] and [K, N]."""
    result = np.zeros((x.shape[0], y.shape[1]), F32)
    for m, n in np.ndindex(*result.shape):
        result[m, n] = accumulated(cut([F32(a * b) for a, b in zip(x[m], y[:, n], strict=True)]), half)
    return result


def _offset(p: int, k: int, stride: int, dilation: int, pad: int) -> int:
    return p * stride + k * dilation - pad


def conv(x, w, b, stride, pad, dilation) -> np.ndarray:
    """R7 for images: x [N, C, H, W], w [O, C, KH, KW], one stride, pad and dilation for both dimensions."""
    n_, c_, h_, w_ = x.shape
    o_, _, kh_, kw_ = w.shape
    size = [(s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in ((h_, kh_), (w_, kw_))]
    y = np.zeros((n_, o_, *size), F32)
    for n, o, p, q in np.ndindex(*y.shape):
        blocks = []
        for first in range(0, c_, 16):
            for i, j in itertools.product(range(kh_), range(kw_)):
                r, s = _offset(p, i, stride, dilation, pad), _offset(q, j, stride, dilation, pad)
                if 0 <= r < h_ and 0 <= s < w_:
                    blocks.append(
                        [F32(x[n, c, r, s] * w[o, c, i, j]) for c in range(first, min(first + 16, c_))]
                    )
        total = accumulated(blocks)
        y[n, o, p, q] = total if b is None else F32(total + b[o])
    return y


def conv_input_grad(dy, w, size, stride, pad, dilation) -> np.ndarray:
    n_, o_ = dy.shape[:2]
    _, c_, kh_, kw_ = w.shape
    dx = np.zeros((n_, c_, *size), F32)
    for n, c, r, s in np.ndindex(*dx.shape):
        blocks = []
        for first in range(0, o_, 16):
            for i, j in itertools.product(range(kh_), range(kw_)):
                p, left = divmod(r + pad - i * dilation, stride)
                q, over = divmod(s + pad - j * dilation, stride)
                if not left and not over and 0 <= p < dy.shape[2] and 0 <= q < dy.shape[3]:
                    blocks.append(
                        [F32(w[o, c, i, j] * dy[n, o, p, q]) for o in range(first, min(first + 16, o_))]
                    )
        dx[n, c, r, s] = accumulated(blocks)
    return dx


def conv_weight_grad(x, dy, kernel, stride, pad, dilation) -> np.ndarray:
    n_, c_, h_, w_ = x.shape
    o_ = dy.shape[1]
    places = list(itertools.product(range(dy.shape[2]), range(dy.shape[3])))
    dw = np.zeros((o_, c_, *kernel), F32)
    for o, c, i, j in np.ndindex(*dw.shape):
        blocks = []
        for n in range(n_):
            terms = []
            for p, q in places:
                r, s = _offset(p, i, stride, dilation, pad), _offset(q, j, stride, dilation, pad)
                inside = 0 <= r < h_ and 0 <= s < w_
                terms.append(F32(x[n, c, r, s] * dy[n, o, p, q]) if inside else F32(0))
            blocks += cut(terms)
        dw[o, c, i, j] = accumulated(blocks)
    return dw


def bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 rounded to bfloat16, ties to even, by integers; finite numbers only."""
    bits = [int(b) for b in np.ascontiguousarray(x, F32).view(np.uint32).reshape(-1)]
    kept = []
    for b in bits:
        low = b & 0xFFFF
        up = low > 0x8000 or (low == 0x8000 and b >> 16 & 1)
        kept.append(((b >> 16) + up) << 16)
    return np.array(kept, np.uint32).view(F32).reshape(x.shape)
