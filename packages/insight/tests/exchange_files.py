"""Files of W&B and MLflow written byte by byte."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from event_files import double, field, number

BLOCK = 32768


def wandb_log(records: Iterable[bytes]) -> bytes:
    """A `.wandb` file."""
    out = bytearray(b":W&B\xe1\xbe\0")
    for record in records:
        first, rest = True, record
        while first or rest:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += bytes(left)
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if first else 4) if not rest else (2 if first else 3)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
            first = False
    return bytes(out)


def item(keys: str | list[str], value: object, text: str | None = None) -> bytes:
    """A value by key, or by a path of keys, as JSON."""
    path = field(1, keys) if isinstance(keys, str) else b"".join(field(2, key) for key in keys)
    return path + field(16, json.dumps(value) if text is None else text)


def history(step: int, time: float, *items: bytes) -> bytes:
    own = item("_step", step), item("_timestamp", time)
    return field(2, b"".join(field(1, one) for one in (*own, *items)) + field(2, number(1, step)))


def wandb_run(name: str, seconds: int, *settings: bytes, id: str = "abc") -> bytes:
    config = b"".join(field(1, one) for one in settings)
    return field(
        17,
        field(1, id) + field(3, "proj") + field(4, config) + field(8, name) + field(17, number(1, seconds)),
    )


def statistics(seconds: int, *items: bytes) -> bytes:
    return field(7, field(2, number(1, seconds)) + b"".join(field(3, one) for one in items))


def typed(key: str, place: int, value: float | str) -> bytes:
    """A value that is no JSON, as newer versions may write it."""
    made = {4: number, 5: number, 6: double, 7: field}[place]
    return field(2, key) + made(place, value)


def mlflow_run(folder: Path, name: str = "run 0", **meta: str) -> Path:
    """An empty run of an experiment, `folder`."""
    run = folder / f"{len(list(folder.glob('*')))}f815462c9b3aa7a9d28beb55"
    for below in ("metrics", "params", "tags"):
        (run / below).mkdir(parents=True)
    told = {
        "lifecycle_stage": "active",
        "run_id": run.name,
        "run_name": name,
        "start_time": "1700000000500",
    } | meta
    (run / "meta.yaml").write_text("".join(f"{key}: {value}\n" for key, value in told.items()))
    (folder / "meta.yaml").write_text("experiment_id: '1'\nname: exp <b>\n")
    return run


def put(run: Path, kind: str, name: str, text: str) -> None:
    path = run / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
