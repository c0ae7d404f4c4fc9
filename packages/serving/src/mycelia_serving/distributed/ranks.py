"""Which rank runs where: the JSON file that describes the devices of a distributed model."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rank:
    """One part of the model: `host` names its machine, by address or any other name."""

    number: int
    host: str
    device_id: int


@dataclass(frozen=True, slots=True)
class RankTable:
    """The ranks in order, and the text they come from."""

    ranks: tuple[Rank, ...]
    text: str


def read_rank_table(path: str, rank_size: int) -> RankTable:
    """The table in a file: `{"server_list": [{"server_id": HOST, "device": [{"rank_id", "device_id"}]}]}`.

    Errors: RuntimeError that names file and cause.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        ranks = [
            Rank(int(device["rank_id"]), str(server["server_id"]), int(device["device_id"]))
            for server in json.loads(text)["server_list"]
            for device in server["device"]
        ]
    except OSError as error:
        raise RuntimeError(f"The rank table {path} cannot be read: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        cause = f"{error} is missing" if isinstance(error, KeyError) else error
        raise RuntimeError(f"The rank table {path} is not as it should be: {cause}") from error
    ranks.sort(key=lambda rank: rank.number)
    if [rank.number for rank in ranks] != list(range(rank_size)):
        found = ", ".join(str(rank.number) for rank in ranks) or "none"
        raise RuntimeError(
            f"The rank table {path} should have the ranks 0 to {rank_size - 1}, but has {found}"
        )
    return RankTable(tuple(ranks), text)
