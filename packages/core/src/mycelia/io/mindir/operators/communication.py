"""Collectives of MindSpore's files, between the ranks that have joined where the file is loaded."""

from __future__ import annotations

from mycelia.engine.communication import world
from mycelia.engine.ops.communication import collectives
from mycelia.io.mindir.operators.table import writes

_WORLD = world.WORLDS[0]


@writes
def AllReduce(x, *, op="sum", group=_WORLD):
    return collectives.all_reduce(x, op, group)


@writes
def AllGather(x, *, group=_WORLD):
    return collectives.all_gather(x, group)


@writes
def ReduceScatter(x, *, op="sum", group=_WORLD):
    return collectives.reduce_scatter(x, op, group)


@writes
def Broadcast(inputs, *, root_rank, group=_WORLD):
    root = world.index_of("Broadcast", root_rank, group)
    return tuple(collectives.broadcast_from(x, root=root, group=group) for x in inputs)
