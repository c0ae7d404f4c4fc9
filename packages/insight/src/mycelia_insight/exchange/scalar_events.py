"""Events with one scalar each, many at a time: 20 times as fast as message by message."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base.wire import field_head, varint
from mycelia.io.crc32c import crc32c, crc32c_of, masked


def records(tag: bytes, content: bytes, steps: np.ndarray, times: np.ndarray, values: np.ndarray) -> bytes:
    """Records of an event file, framed and with checksums.

    content: what a Value of such a scalar has beside its tag, its number (of single precision) at the begin;
    steps int64, times float64 in seconds, values float32 [n]. A step takes as many bytes as the longest one:
    a varint may end in zeros.
    """
    unsigned = steps.astype(np.uint64)
    width = len(varint(int(unsigned.max(initial=0))))
    value = field_head(1, len(tag)) + tag + content[:1], content[5:]
    inner = len(value[0]) + 4 + len(value[1])
    outer = len(field_head(1, inner)) + inner
    before = field_head(5, outer) + field_head(1, inner) + value[0]
    layout = np.dtype(
        [("length", "<u8"), ("head", "<u4"), ("wall", "u1"), ("time", "<f8"), ("key", "u1"),
         ("step", "u1", (width,)), ("before", "u1", (len(before),)), ("value", "<f4"),
         ("after", "u1", (len(value[1]),)), ("sum", "<u4")]
    )  # fmt: skip
    made = np.zeros(len(steps), layout)
    size = layout.itemsize - 16
    made["length"] = size
    made["head"] = masked(crc32c(size.to_bytes(8, "little")))
    made["wall"], made["key"] = 1 << 3 | 1, 2 << 3
    made["time"], made["value"] = times, values
    for at in range(width):
        part = (unsigned >> np.uint64(7 * at)).astype(np.uint8) & 127
        made["step"][:, at] = part | (128 if at < width - 1 else 0)
    made["before"] = np.frombuffer(before, np.uint8)
    made["after"] = np.frombuffer(value[1], np.uint8)
    begins = np.arange(len(steps), dtype=np.int64) * layout.itemsize + 12
    made["sum"] = masked(crc32c_of(made.tobytes(), begins, np.full(len(steps), size, np.int64)))
    return made.tobytes()
