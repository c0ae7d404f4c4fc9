"""Event files of many scalars, made at once: all records of a file have the same length."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_POLYNOMIAL = 0x82F63B78  # CRC-32C, reflected


def _table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


_TABLE = _table()


def masked_crc(rows: np.ndarray) -> np.ndarray:
    """TFRecord's masked CRC-32C of each row of uint8 [n, length]; uint32 [n]."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15) | (crc << 17)) + np.uint32(0xA282EAD8)


def records(
    tag: str, steps: np.ndarray, values: np.ndarray, times: np.ndarray, tensorboard: bool
) -> np.ndarray:
    """Framed events of one scalar each, uint8 [n, length]; steps below 2^35."""
    name = tag.encode()
    value = b"\x0a" + bytes([len(name)]) + name + (b"\x15" if tensorboard else b"\x1d")
    summary = b"\x0a" + bytes([len(value) + 4]) + value
    head = b"\x2a" + bytes([len(summary) + 4]) + summary
    size = 9 + 6 + len(head) + 4
    rows = np.empty((len(steps), 12 + size + 4), np.uint8)
    length = np.frombuffer(struct.pack("<Q", size), np.uint8)
    rows[:, :8] = length
    rows[:, 8:12] = masked_crc(length[None]).view(np.uint8)
    body = rows[:, 12 : 12 + size]
    body[:, 0], body[:, 9] = 0x09, 0x10
    body[:, 1:9] = times.astype("<f8")[:, None].view(np.uint8)
    for i in range(5):  # a varint of five bytes, whatever its value
        body[:, 10 + i] = ((steps >> (7 * i)) & 0x7F) | (0x80 if i < 4 else 0)
    body[:, 15 : 15 + len(head)] = np.frombuffer(head, np.uint8)
    body[:, 15 + len(head) :] = values.astype("<f4")[:, None].view(np.uint8)
    rows[:, 12 + size :] = masked_crc(body).astype("<u4")[:, None].view(np.uint8)
    return rows


def _version(text: str) -> bytes:
    message = np.frombuffer(
        b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a" + bytes([len(text)]) + text.encode(), np.uint8
    )
    length = np.frombuffer(struct.pack("<Q", len(message)), np.uint8)
    return b"".join(
        part.tobytes() for part in (length, masked_crc(length[None]), message, masked_crc(message[None]))
    )


def write_graph(folder: Path, count: int) -> Path:
    """A run with a graph of MindSpore's: a chain of `count` operators, 100 to a cell, 10 cells to a block."""
    from mycelia.engine.base.wire import field
    from mycelia.train.summary.events import double, framed, text

    shape = b"".join(field(1, field(1, n)) for n in (32, 64, 7, 7))
    kind = field(1, 14) + field(2, field(1, 11) + field(2, shape))
    attributes = b"".join(
        field(5, text(1, k) + field(2, field(1, 5) + field(3, 3))) for k in ("group", "axis")
    )

    def node(i: int) -> bytes:
        scope, name = f"block{i // 1000}/cell{i // 100 % 10}", f"Kind{i % 7}-op{i}"
        inputs = field(1, text(1, str(i - 1)) + field(2, 0)) if i else b""
        named = text(2, str(i)) + text(3, f"Kind{i % 7}") + text(4, scope)
        return field(
            1, inputs + named + attributes + field(6, kind) + text(8, f"{scope}/{name}") + text(10, name)
        )

    folder.mkdir(parents=True, exist_ok=True)
    graph = b"".join(map(node, range(count))) + text(2, "network")
    first = double(1, 1.7e9) + text(3, "MindSpore.Event:1")
    path = folder / "events.out.events.summary.1700000000.0.host_MS"
    path.write_bytes(framed(first) + framed(double(1, 1.7e9) + field(4, graph)))
    return path


def write(folder: Path, count: int, tags: tuple[str, ...], tensorboard: bool, begin: float = 1.7e9) -> Path:
    """A run of `count` steps of each tag, a second apart; a noisy curve that falls."""
    folder.mkdir(parents=True, exist_ok=True)
    name = (
        "events.out.tfevents.1700000000.host"
        if tensorboard
        else "events.out.events.summary.1700000000.0.host_MS"
    )
    random = np.random.default_rng(0)
    with open(folder / name, "wb") as file:
        file.write(_version("brain.Event:2" if tensorboard else "MindSpore.Event:1"))
        for start in range(0, count, 1 << 20):
            steps = np.arange(start, min(count, start + (1 << 20)))
            values = np.exp(-3 * steps / count) + 0.1 * random.standard_normal(len(steps))
            by_tag = [records(tag, steps, values, begin + steps, tensorboard) for tag in tags]
            if len(by_tag) == 1:
                file.write(by_tag[0].tobytes())
            else:
                for at in range(len(steps)):
                    file.write(b"".join(rows[at].tobytes() for rows in by_tag))
    return folder / name
