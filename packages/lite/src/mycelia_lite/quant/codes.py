"""Fields of weights in an entropy code, which the runtime decodes once: few bits for those that come often.

Range asymmetric numeral systems (J. Duda, 2009) with a state for each of several lanes, to which fields
belong in turn; see `native/src/coded.cc`.
"""

from __future__ import annotations

import numpy as np

_SHARE = 12  # bits of the shares that fields have
_WHOLE = 1 << _SHARE
_FIELDS = 4096  # of a lane at least
_MOST_LANES = 256


def encoded(q: np.ndarray, bits: int) -> tuple[np.ndarray, int] | None:
    """(bytes, lanes) for integers of `bits` bits, 1 to 8; None if fields one behind another are no longer."""
    fields = (q.reshape(-1).astype(np.int64) + (1 << (bits - 1))).astype(np.uint8)
    counts = np.bincount(fields, minlength=1 << bits)
    lanes = 1
    while lanes < _MOST_LANES and fields.size // (2 * lanes) >= _FIELDS:
        lanes *= 2
    share = _shares(counts)
    states, words = _states_and_words(fields, share.astype(np.uint64), lanes)
    parts = [share.astype("<u2"), states.astype("<u4"), words.astype("<u2")]
    code = np.concatenate([part.view(np.uint8) for part in parts])
    return (code, lanes) if code.size < -(-fields.size * bits // 8) else None


def _shares(counts: np.ndarray) -> np.ndarray:
    """Shares of 4096 near those of the counts; none is 0 that is counted."""
    share = np.where(counts > 0, np.maximum(np.rint(counts / counts.sum() * _WHOLE), 1), 0).astype(np.int64)
    while (over := share.sum() - _WHOLE) != 0:
        i = int(np.argmax(share))
        share[i] -= over if over < 0 else min(over, share[i] // 2)
    return share


def _states_and_words(fields: np.ndarray, share: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """The lanes' last states and the words that they put out, in the order in which they are taken in."""
    start = np.concatenate([[0], np.cumsum(share)[:-1]]).astype(np.uint64)
    states = np.full(lanes, 1 << 16, np.uint64)
    words = []
    rows = -(-fields.size // lanes)
    for row in range(rows - 1, -1, -1):
        some = fields[row * lanes : (row + 1) * lanes]
        own, count = states[: some.size], share[some]
        full = own >= count << np.uint64(20)
        words.append((own[full] & np.uint64(0xFFFF)).astype(np.uint16))
        own = np.where(full, own >> np.uint64(16), own)
        states[: some.size] = (own // count << np.uint64(_SHARE)) + own % count + start[some]
    return states, np.concatenate(words[::-1])


def entropy(counts: np.ndarray) -> float:
    """Bits that a field takes on average."""
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log2(share)).sum())
