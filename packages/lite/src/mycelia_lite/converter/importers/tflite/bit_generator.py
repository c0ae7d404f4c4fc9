"""Random bits that follow from a state: STABLEHLO_RNG_BIT_GENERATOR.

Philox 4x32 with 10 rounds and Threefry 2x32 with 20 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
easy as 1, 2, 3", SC 2011). A state of uint64 has the key, the counter of blocks and, of Philox, the counter's
upper half, for which the key stands where it is left out. Words are computed as uint64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import mycelia as ms
from mycelia import ops
from mycelia_lite.converter.bits import reinterpreted
from mycelia_lite.converter.importers.onnx.calls import cast, known_shape
from mycelia_lite.converter.importers.tflite.calls import Call, operator

_MOST = 1 << 24  # blocks
_MULTIPLIERS, _STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)  # of Philox
_ROTATIONS, _PARITY = ((13, 15, 26, 6), (17, 29, 16, 24)), 0x1BD11BDA  # of Threefry


@operator("STABLEHLO_RNG_BIT_GENERATOR")
def _bits(call, state):
    algorithm = call.name_of("StablehloRngBitGeneratorOptions", "algorithm")
    (size,) = known_shape(call, state)
    philox = algorithm != "THREEFRY"
    if state.dtype is not ms.uint64 or size not in ((2, 3) if philox else (2,)):
        raise call.fail(f"{algorithm} with a state {state.dtype} of {size}")
    made = call.outputs[1]
    shape, width = tuple(made.table.shape), 4 if philox else 2
    wide = np.dtype(made.dtype.np).itemsize // 4
    count = math.prod(shape) * wide
    blocks = -(-count // width)
    if made.dtype.is_floating or wide not in (1, 2) or blocks > _MOST:
        raise call.fail(f"bits as {made.dtype} {list(shape)}")
    parts = [state[i] for i in range(size)]
    key = _halves(parts[0])
    counter = _halves(ops.add(parts[1], ms.Tensor(np.arange(blocks, dtype=np.uint64))))
    words = (
        _philox(key, [*counter, *_halves(parts[2] if size == 3 else parts[0])])
        if philox
        else _threefry(key, counter)
    )
    lines = [ops.broadcast_to(ops.reshape(w, (-1, 1)), (blocks, 1)) for w in words]
    numbers = ops.reshape(ops.concat(tuple(lines), 1), (-1,))[:count]
    after = ops.concat(
        (state[:1], ops.add(state[1:2], _number(blocks)), *([state[2:]] if size == 3 else [])), 0
    )
    return after, ops.reshape(_as(call, numbers, made.dtype, wide), shape)


def philox(seed: np.uint64, stream: np.uint64, count: int) -> np.ndarray:
    """The first `count` words of 32 bits, as uint64, by a key and the upper half of the counter."""
    blocks = ms.Tensor(np.arange(-(-count // 4), dtype=np.uint64))
    words = _philox(_halves(ms.Tensor(seed)), [*_halves(blocks), *_halves(ms.Tensor(stream))])
    return np.stack([w.asnumpy() for w in words], -1).reshape(-1)[:count]


def _number(value: int) -> ms.Tensor:
    return ms.Tensor(np.uint64(value))


def _low(x: Any) -> Any:
    return ops.bitwise_and(x, _number(0xFFFFFFFF))


def _high(x: Any, bits: int = 32) -> Any:
    return ops.bitwise_right_shift(x, _number(bits))


def _halves(x: Any) -> list[Any]:
    return [_low(x), _high(x)]


def _philox(key: list[Any], counter: list[Any]) -> list[Any]:
    for _ in range(10):
        a, b = (ops.mul(counter[i], _number(m)) for i, m in zip((0, 2), _MULTIPLIERS))
        first, second = (
            ops.bitwise_xor(ops.bitwise_xor(_high(p), counter[i]), k) for p, i, k in zip((b, a), (1, 3), key)
        )
        counter = [first, _low(b), second, _low(a)]
        key = [_low(ops.add(k, _number(step))) for k, step in zip(key, _STEPS)]
    return counter


def _threefry(key: list[Any], counter: list[Any]) -> list[Any]:
    keys = [*key, ops.bitwise_xor(ops.bitwise_xor(*key), _number(_PARITY))]
    x, y = (_low(ops.add(c, k)) for c, k in zip(counter, key))
    for turn in range(5):
        for bits in _ROTATIONS[turn % 2]:
            x = _low(ops.add(x, y))
            turned = ops.bitwise_or(_low(ops.mul(y, _number(1 << bits))), _high(y, 32 - bits))
            y = ops.bitwise_xor(turned, x)
        x = _low(ops.add(x, keys[(turn + 1) % 3]))
        y = _low(ops.add(ops.add(y, keys[(turn + 2) % 3]), _number(turn + 1)))
    return [x, y]


def _as(call: Call, words: Any, dtype: Any, wide: int) -> Any:
    """Words of 32 bits as elements of `dtype`, the lower half first where these are wide."""
    if wide == 2:
        pairs = ops.reshape(words, (-1, 2))
        words = ops.bitwise_or(pairs[:, 0], ops.mul(pairs[:, 1], _number(1 << 32)))
    else:
        words = cast(words, ms.uint32)
    return words if words.dtype is dtype else reinterpreted(call, words, dtype)
