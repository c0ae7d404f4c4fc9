"""Tables of chips: what the cycle model and the memory take from one, read from `chips/NAME.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Rates are per AI core and cycle; see the comments in the files for their sources.

    cube: products per cycle of 16-bit floats, as (M, N, K) of one step. vector_bytes: bytes of one operand a
    cycle. l0a, l0b, l0c, l1, ub: bytes of the buffers. l1_to_l0a, l1_to_l0b, memory_to_core, core_to_memory:
    bytes a cycle of MTE1 (twice), MTE2, MTE3. latency: cycles until the first byte of a transfer.
    """

    name: str
    cores: int
    frequency_hz: float
    memory_bytes: int
    cube: tuple[int, int, int]
    cube_int8_factor: int
    cube_start: int
    vector_bytes: int
    vector_start: int
    scalar_per_instruction: int
    l0a: int
    l0b: int
    l0c: int
    l1: int
    ub: int
    l1_to_l0a: int
    l1_to_l0b: int
    memory_to_core: int
    core_to_memory: int
    mte1_latency: int
    mte2_latency: int
    mte3_latency: int


def names() -> list[str]:
    """The chips that there are tables of."""
    found = resources.files("mycelia_backend_ascend_sim") / "chips"
    return sorted(f.name.removesuffix(".toml") for f in found.iterdir() if f.name.endswith(".toml"))


@functools.cache
def load(name: str) -> Chip:
    """The table of a chip. Errors: ValueError that names the chips there are."""
    if name not in names():
        raise ValueError(f"the chip must be one of {names()}, but got {name!r}")
    file = resources.files("mycelia_backend_ascend_sim") / "chips" / f"{name}.toml"
    table = tomllib.loads(file.read_text())
    flat = {key: value for part in table.values() for key, value in part.items()}
    return Chip(name=name, **{**flat, "cube": tuple(flat["cube"])})
