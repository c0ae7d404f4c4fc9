"""Orders of collectives that processes have recorded, compared with one another: who would wait for ever.

A run with recording on leaves `rank_0/execute_order/comm_execute_order.csv` for each process. Every
collective gets a key that is the same for all who take part; each of them must have every key, and in
compatible orders.
"""

from __future__ import annotations

import collections
import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mycelia.engine.base import errors, log

_FIELDS = (
    "index", "group", "comm_rank", "primitive", "src_rank", "dest_rank", "root_rank",
    "input_shape", "input_type", "output_shape", "output_type", "input_size", "output_size",
)  # fmt: skip
_logger = log.logger("mycelia.utils")


@dataclass
class ExecuteOrder:
    """One collective of one process; ranks are texts, `comm_rank` several with spaces between."""

    index: str
    group: str
    comm_rank: str
    primitive: str
    src_rank: str = ""
    dest_rank: str = ""
    root_rank: str = ""
    input_shape: str = ""
    output_shape: str = ""

    def generate_base_key(self, rank: str) -> str:
        """The key of this collective, seen from process `rank`, without its number."""
        if self.primitive == "Send":
            return f"Send_Receive_{self.group}_({rank})->({self.dest_rank})_{self.input_shape}"
        if self.primitive == "Receive":
            return f"Send_Receive_{self.group}_({self.src_rank})->({rank})_{self.output_shape}"
        ranks = ",".join(self.comm_rank.split())
        if self.root_rank:
            return f"{self.primitive}_{self.group}_commRank:({ranks})_rootRank:({self.root_rank})"
        return f"{self.primitive}_{self.group}_({ranks})"


class RankFolderParser:
    """Reads the records below `folders`: absolute paths of folders `rank_<n>`, or of what holds them.

    Errors: ValueError for a relative path, one that does not exist, or one without records.
    """

    def __init__(self, folders: str | list[str]) -> None:
        self.folders = [folders] if isinstance(folders, str) else list(folders)
        for path in map(Path, self.folders):
            subject = "RankFolderParser"
            if not path.is_absolute():
                raise errors.value_error(subject, f"folders must be absolute paths, but got '{path}'")
            if not path.is_dir():
                raise errors.value_error(subject, f"there is no folder '{path}'")
            if not path.name.startswith("rank_") and not list(path.glob("rank_*")):
                raise errors.value_error(subject, f"no folder rank_<n> in '{path}'")

    def parse(self) -> dict[str, list[ExecuteOrder]]:
        """The collectives of each process, by its number."""
        found: dict[str, list[ExecuteOrder]] = {}
        for path in map(Path, self.folders):
            ranks = [path] if path.name.startswith("rank_") else sorted(path.glob("rank_*"))
            for folder in ranks:
                rank, orders = self.parse_rank_folder(str(folder), folder.name.removeprefix("rank_"))
                if orders is not None:
                    found[rank] = orders
        return found

    def parse_rank_folder(self, rank_folder_path: str, rank_id: str) -> tuple[str, list[ExecuteOrder] | None]:
        """The number of a process and its collectives; None for a record that cannot be read."""
        path = Path(rank_folder_path, "execute_order", "comm_execute_order.csv")
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file)
                if tuple(rows.fieldnames or ()) != _FIELDS:
                    _logger.error("%s has other columns than %s", path, ", ".join(_FIELDS))
                    return rank_id, None
                names = [name for name in _FIELDS if name in ExecuteOrder.__dataclass_fields__]
                return rank_id, [ExecuteOrder(**{n: (row[n] or "").strip() for n in names}) for row in rows]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            _logger.error("%s cannot be read: %s", path, error)
            return rank_id, None


def modify_execute_orders(execute_orders_map: dict[str, list[ExecuteOrder]]) -> dict[str, list[str]]:
    """The keys of each process' collectives, numbered where one comes again: ``AllReduce_g_(0,1)_2th``."""
    found = {}
    for rank, orders in execute_orders_map.items():
        seen: collections.Counter[str] = collections.Counter()
        keys = []
        for order in orders:
            base = order.generate_base_key(rank)
            seen[base] += 1
            keys.append(f"{base}_{seen[base]}th")
        found[rank] = keys
    return found


_RANKS = re.compile(r"\((\d+)\)->\((\d+)\)|commRank:\(([\d,]+)\)|_\(([\d,]+)\)_\d+th$")


def _participants(key: str) -> set[str]:
    """The processes that a key names; shapes have brackets too, and a root is among the others."""
    found = _RANKS.search(key)
    return set(",".join(filter(None, found.groups())).split(",")) if found else set()


def parse_and_validate(data: dict[str, list[str]], all_rank: bool = True) -> None:
    """Log an error for every collective that not all have who should take part.

    With `all_rank` false only processes that are in `data` are asked.
    """
    keys: dict[str, set[str]] = {}
    for rank, values in data.items():
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            keys[rank] = set(values)
        else:
            _logger.error("the collectives of process %s must be a list of texts", rank)
    for key in dict.fromkeys(itertools.chain(*keys.values())):
        for rank in sorted(_participants(key)):
            if rank in keys and key not in keys[rank]:
                _logger.error("process %s lacks %s, which another process waits in", rank, key)
            elif rank not in keys and all_rank:
                _logger.error("there is no record of process %s, which takes part in %s", rank, key)


def detect_cycle_in_graph(
    ranks_map: dict[str, list[str]],
) -> tuple[list[str], list[str]] | tuple[None, None]:
    """Collectives that wait for one another in a circle, and whose orders demand it; (None, None) if none do.

    The circle is given as its keys, the first again at the end, and as a text ``rank A -> B`` for each step.
    """
    rank_of: dict[tuple[str, str], str] = {}
    after: dict[str, list[str]] = {}
    for rank, keys in ranks_map.items():
        for first, second in itertools.pairwise(keys):
            if (first, second) not in rank_of:
                after.setdefault(first, []).append(second)
            rank_of[first, second] = rank
    done: set[str] = set()
    for start in after:
        path: list[str] = []  # the walk from `start` to where it is now, with what is still to be tried
        pending: list[Iterator[str]] = [iter((start,))]
        while pending:
            key = next(pending[-1], None)
            if key is None:
                pending.pop()
                if path:
                    done.add(path.pop())
            elif key in path:
                circle = [*path[path.index(key) :], key]
                steps = [f"{rank_of[a, b]} {a} -> {b}" for a, b in itertools.pairwise(circle)]
                return circle, steps
            elif key not in done:
                path.append(key)
                pending.append(iter(after.get(key, ())))
    return None, None


def runtime_execution_order_check(folders_: str | list[str], all_rank: bool | None = None) -> None:
    """Compare the recorded orders of collectives of several processes; what is wrong is logged as errors.

    `folders_` as of `RankFolderParser`; `all_rank` says that the records of all processes are there. By
    default that is so for one folder, and not so for a list.  Errors: ValueError for paths without records.
    """
    orders = modify_execute_orders(RankFolderParser(folders_).parse())
    parse_and_validate(orders, isinstance(folders_, str) if all_rank is None else all_rank)
    circle, steps = detect_cycle_in_graph(orders)
    if circle is None:
        _logger.info("no collectives wait for one another in a circle")
    else:
        _logger.error("collectives wait for one another: %s; %s", " -> ".join(circle), ", ".join(steps))
