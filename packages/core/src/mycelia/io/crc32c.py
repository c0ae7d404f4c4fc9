"""CRC-32C (Castagnoli), and its masked form, which event and TFRecord files hold.

NumPy computes it for blocks side by side: what a block makes of state 0, and what as many zeros make of the
state before it, add up to the state behind it.
"""

from __future__ import annotations

import functools

import numpy as np

from mycelia.io.windows import Windows, spread

_CASTAGNOLI = 0x82F63B78  # reflected
_MASK = 0xA282EAD8
_SHORT_BLOCK, _LONG_BLOCK = 128, 1024  # bytes: long ones cost steps, many ones cost joins
_AT_ONCE = 1024  # blocks: their states stay in the cache
_LONG = 16384  # bytes of data from which blocks are long


@functools.cache
def _table(bits: int) -> np.ndarray:
    """What a state of `bits` bits becomes after as many zeros."""
    table = np.arange(1 << bits, dtype=np.uint32)
    for _ in range(bits):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_CASTAGNOLI), table >> 1)
    return table


@functools.cache
def _zeros(size: int) -> tuple[np.ndarray, np.ndarray]:
    """What the low and the high half of a state become after `size` (a power of 2, 2 or more) zero bytes."""
    if size == 2:
        return _table(16), np.arange(1 << 16, dtype=np.uint32)
    low, high = _zeros(size // 2)
    return tuple(low[half & 0xFFFF] ^ high[half >> 16] for half in (low, high))


@functools.cache
def _starts(block: int) -> np.ndarray:
    """The initial state after 0, 1, ..., block - 1 zero bytes."""
    table, states = _table(8).tolist(), [0xFFFFFFFF]
    for _ in range(block - 1):
        states.append(table[states[-1] & 0xFF] ^ states[-1] >> 8)
    return np.array(states, np.uint32)


def crc32c(data: bytes) -> int:
    """The checksum of `data`."""
    if len(data) >= 1024:
        one = np.array([0]), np.array([len(data)])
        return int(crc32c_of(Windows(data), *one)[0])
    crc, table = 0xFFFFFFFF, _steps()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@functools.cache
def _steps() -> list[int]:
    return _table(8).tolist()


def masked(crc):
    """A checksum, or an array of them, rotated by 15 bits and with a number added."""
    if isinstance(crc, np.ndarray):
        return ((crc >> 15) | (crc << 17)) + np.uint32(_MASK)
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def crc32c_of(windows: Windows, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The checksums of many pieces of a buffer."""
    if not len(begins):
        return np.zeros(0, np.uint32)
    block = _LONG_BLOCK if int(sizes.mean()) >= _LONG else _SHORT_BLOCK
    rest, whole = sizes % block, sizes // block
    firsts = begins + rest
    lanes = np.zeros((len(begins) + int(whole.sum()), block), np.uint8)
    # What is in front of the whole blocks, behind zeros, which keep a state of 0.
    if (rest == rest[0]).all():
        if rest[0]:
            lanes[: len(begins), block - rest[0] :] = windows.rows(int(rest[0]), begins)
    else:
        places = np.repeat(np.arange(len(begins)) * block + block - rest, rest)
        inside = spread(np.zeros(len(begins), np.int64), rest)
        lanes.reshape(-1)[places + inside] = windows.take("u1", spread(begins, rest))
    blocks = np.repeat(firsts, whole) + block * spread(np.zeros(len(begins), np.int64), whole)
    lanes[len(begins) :] = windows.rows(block, blocks)
    found = _from_zero(lanes)
    states = _starts(block)[rest] ^ found[: len(begins)]
    at = len(begins) + np.cumsum(whole) - whole
    low, high = _zeros(block)
    for step in range(int(whole.max())):
        chosen = slice(None) if (whole > step).all() else np.flatnonzero(whole > step)
        before = states[chosen]
        states[chosen] = low[before & 0xFFFF] ^ high[before >> 16] ^ found[at[chosen] + step]
    return states ^ np.uint32(0xFFFFFFFF)


def _from_zero(lanes: np.ndarray) -> np.ndarray:
    """The state that each row leads to from state 0: of every 8 bytes first, then of twice as many."""
    made = np.empty(len(lanes), np.uint32)
    for at in range(0, len(lanes), _AT_ONCE):
        pairs = lanes[at : at + _AT_ONCE].view("<u2")
        states = _behind(0).take(pairs[:, 3::4])
        for k in (1, 2, 3):
            states ^= _behind(2 * k).take(pairs[:, 3 - k :: 4])
        size = 8
        while states.shape[1] > 1:
            low, high = _zeros(size)
            first = states[:, 0::2]
            states = states[:, 1::2] ^ low.take(first & 0xFFFF) ^ high.take(first >> 16)
            size *= 2
        made[at : at + _AT_ONCE] = states[:, 0]
    return made


@functools.cache
def _behind(size: int) -> np.ndarray:
    """What two bytes lead to from state 0 when `size` zero bytes follow."""
    if size == 0:
        return _table(16)
    before, (low, high) = _behind(size - 2), _zeros(2)
    return low[before & 0xFFFF] ^ high[before >> 16]
