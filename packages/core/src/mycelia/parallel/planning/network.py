"""Time of collectives by a model of the network: levels, each with a latency and a rate (alpha and beta).

A message of n bytes between two ranks of a level takes `latency_s + n / bytes_per_s`. Collectives are those
of Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH": halves
and doubles of what is large, the whole at once of what is small. Over several levels each makes its part
within the inner one first, so that only a share of the bytes crosses the outer ones.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mycelia.engine.base import errors


@dataclass(frozen=True)
class Level:
    """Ranks, or groups of ranks, that reach one another alike: `ranks` of them, `latency_s` seconds a
    message, `bytes_per_s` of one rank, in each direction.  Errors: ValueError for what is not positive.
    """

    name: str
    ranks: int
    latency_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        for name, least in (("ranks", 1), ("latency_s", 0), ("bytes_per_s", math.ulp(0.0))):
            value = getattr(self, name)
            kinds = int if name == "ranks" else (int, float)
            known = isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
            if not known or value < least:
                number = f"a number {'above' if least else 'from'} 0"
                kind = "an int of 1 or more" if name == "ranks" else number
                raise errors.value_error(
                    "Level", f"{name} of {self.name!r} must be {kind}, but got {value!r}"
                )

    def scatter(self, ranks: int, size: float) -> float:
        """Seconds in which `ranks` reduce `size` bytes each and keep a part each, by recursive halving; as
        long takes the way back, in which all get all parts.
        """
        rounds = math.ceil(math.log2(ranks))
        return rounds * self.latency_s + (ranks - 1) / ranks * size / self.bytes_per_s

    def doubled(self, ranks: int, size: float) -> float:
        """Seconds in which all reduce all by recursive doubling."""
        return math.ceil(math.log2(ranks)) * (self.latency_s + size / self.bytes_per_s)


@dataclass(frozen=True)
class Network:
    """Levels, the innermost first: ranks of a machine, machines of a switch, and so on."""

    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        if not self.levels:
            raise errors.value_error("Network", "levels must have a level at least, but it is empty")

    @property
    def most(self) -> int:
        """How many ranks there can be."""
        return math.prod(level.ranks for level in self.levels)

    def shares(self, ranks: int) -> list[tuple[Level, int]]:
        """How many take part on each level when `ranks` fill it from the innermost on.

        Errors: ValueError if there are fewer.
        """
        if not 1 <= ranks <= self.most:
            raise errors.value_error(
                "plan", f"ranks must be in [1, {self.most}] on this network, but got {ranks}",
                hint="the product of `ranks` of all levels is what the network has",
            )  # fmt: skip
        found = []
        for level in self.levels:
            here = min(level.ranks, ranks)
            found.append((level, here))
            ranks = -(-ranks // here)
        return found

    def all_reduce(self, ranks: int, size: float) -> float:
        """Seconds until all have the sum of `size` bytes of each."""
        shares = self.shares(ranks)
        parts = 2 * self._scattered(shares, size)
        return min(parts, sum(level.doubled(count, size) for level, count in shares))

    def reduce_scatter(self, ranks: int, size: float) -> float:
        """Seconds until each has its part of the sum of `size` bytes; so long takes all_gather to `size`."""
        return self._scattered(self.shares(ranks), size)

    @staticmethod
    def _scattered(shares: Sequence[tuple[Level, int]], size: float) -> float:
        seconds = 0.0
        for level, count in shares:
            seconds += level.scatter(count, size)
            size /= count
        return seconds


def _of_links(latency_s: float, gigabits_per_s: float) -> Network:
    """Machines of eight ranks, which reach one another by memory, each with a link of this nominal rate."""
    inside = Level("machine", 8, 5e-6, 10e9)
    return Network((inside, Level("network", 1 << 17, latency_s, gigabits_per_s * 1e9 / 8 / 8)))


#: Networks by name: nominal rates of the links, shared by the eight ranks of a machine.
NETWORKS = {
    "ethernet-10g": _of_links(30e-6, 10),
    "ethernet-100g": _of_links(15e-6, 100),
    "infiniband-ndr": _of_links(3e-6, 400),
}


def fitted(name: str, ranks: int, times: Sequence[tuple[int, float]]) -> Level:
    """The level whose all_reduce of `ranks` takes the seconds nearest to `times`, pairs (bytes, seconds):
    least squares of the relative error.  Errors: ValueError for fewer than two sizes.
    """
    if ranks < 2 or len({size for size, _ in times}) < 2:
        raise errors.value_error("plan", f"two ranks and two sizes are needed, but got {ranks} and {times!r}")
    rounds = 2 * math.ceil(math.log2(ranks))
    each = np.array([(rounds / t, 2 * (ranks - 1) / ranks * size / t) for size, t in times])
    found = np.linalg.lstsq(each, np.ones(len(each)), rcond=None)[0]
    latency, per_byte = (float(max(x, 1e-12)) for x in found)
    return Level(name, ranks, latency, 1 / per_byte)


def text_of(network: Network) -> str:
    """The TOML file that `read_network` reads."""
    tables = (
        f"[[level]]\nname = {json.dumps(level.name)}\nranks = {level.ranks}\n"
        f"latency_s = {level.latency_s!r}\nbytes_per_s = {level.bytes_per_s!r}\n"
        for level in network.levels
    )  # fmt: skip
    return "\n".join(tables)


def read_network(path: str | Path) -> Network:
    """The network that a TOML file describes, a table `[[level]]` each with the fields of `Level`.

    Errors: OSError if it cannot be read, ValueError naming the file and what is wrong in it.
    """
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise errors.value_error("plan", f"{path} is no TOML file: {cause}") from None
    levels = tables.get("level")
    fields = set(Level.__dataclass_fields__)
    if not isinstance(levels, list) or not levels or set(tables) != {"level"}:
        raise errors.value_error("plan", f"{path} must hold tables [[level]] and nothing else")
    for number, level in enumerate(levels):
        if not isinstance(level, dict) or set(level) != fields:
            told = ", ".join(sorted(level)) if isinstance(level, dict) else repr(level)
            raise errors.value_error(
                "plan", f"level {number} of {path} must have {', '.join(sorted(fields))}, but has {told}"
            )
    return Network(tuple(Level(**level) for level in levels))
