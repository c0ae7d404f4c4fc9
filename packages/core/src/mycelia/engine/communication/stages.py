"""Stages of a pipeline: which of them this process computes, and with whom it shares what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycelia.engine.base import parallel_settings
from mycelia.engine.communication import mode, world


class Stage(NamedTuple):
    """Stage `number` of `count`. Each has `width` processes, of which this one is number `lane`; their ranks
    follow one another, those of stage 0 first, as in MindSpore.
    """

    number: int
    count: int
    width: int
    lane: int

    def rank(self, number: int) -> int:
        """Who computes stage `number` of the same rows."""
        return number * self.width + self.lane

    @property
    def ranks(self) -> tuple[int, ...]:
        """Who computes this stage, each of other rows."""
        return tuple(self.number * self.width + lane for lane in range(self.width))


def current(subject: str) -> Stage | None:
    """The stage of this process; None where networks are not cut into stages. Errors: as `mode.degree`."""
    count = parallel_settings.get_auto_parallel_context("pipeline_stages")
    width = mode.degree(subject)
    place = world.place()
    if count == 1 or place is None:
        return None
    return Stage(place[0] // width, count, width, place[0] % width)


def group(ranks: Sequence[int]) -> str:
    """The name of the group of these ranks of the world, this one among them, which all of them ask for."""
    here = world.current()
    assert here is not None
    if tuple(ranks) == here.communicator.ranks:
        return world.WORLDS[0]
    name = f"pipeline_{'_'.join(map(str, ranks))}"
    if name not in here.groups:
        here.create(name, ranks)
    return name


def data_group(subject: str) -> str:
    """The name of the group of those that train the same Parameters, each on its share of the data."""
    stage = current(subject)
    return world.WORLDS[0] if stage is None else group(stage.ranks)


def shard_group(subject: str, size: int) -> str:
    """The name of the group of `size` of those that train the same Parameters, which follow one another: they
    have all parts of what is divided.
    """
    name = data_group(subject)
    members = world.group(subject, name)
    if members.size == size:
        return name
    begin = members.rank // size * size
    return group(members.ranks[begin : begin + size])


def replica_group(subject: str, size: int) -> str:
    """The name of the group of those that have the same part as this one, if each `size` have all parts."""
    members = world.group(subject, data_group(subject))
    return group(members.ranks[members.rank % size :: size])
