"""How a training by several processes begins: with the same number of steps and the same weights on all."""

from __future__ import annotations

import hashlib

from mycelia.engine.base import errors, log, parallel_settings
from mycelia.engine.communication import stages, world
from mycelia.engine.ops.communication.collectives import broadcast_from
from mycelia.engine.tensors.tensor import Parameter
from mycelia.nn.cell import Cell


def begin(network: Cell, steps: int | None) -> None:
    """Called by all ranks. With the setting `parameter_broadcast` the weights of rank 0 go to all; without
    it a warning says if they differ.

    Errors: ValueError, on all ranks, if they have different numbers of batches.
    """
    communicator = world.group("Model.train", world.WORLDS[0])
    found = communicator.all_gather_object(steps)
    if len(set(found)) > 1:
        told = ", ".join(f"rank {rank} has {count}" for rank, count in enumerate(found))
        raise errors.value_error(
            "Model.train", f"all ranks must have the same number of batches, but {told}",
            hint="num_shards and shard_id of a dataset give each rank as many rows",
        )  # fmt: skip
    group = world.WORLDS[0]
    if any(parameter.stages for parameter in network.get_parameters()):  # each stage has its own
        group = stages.data_group("Model.train")
        communicator = world.group("Model.train", group)
    if parallel_settings.get_auto_parallel_context("parameter_broadcast"):
        for parameter in _common(network):
            parameter.set_data(broadcast_from(parameter, root=0, group=group))
        return
    digests = communicator.all_gather_object(_digest(network))
    others = [rank for rank, digest in zip(communicator.ranks, digests) if digest != digests[0]]
    if others and communicator.rank == 0:
        log.warning(
            "Model.train: ranks %s begin with other weights than rank %d: set_seed on all of them, or "
            "set_auto_parallel_context(parameter_broadcast=True)", others, communicator.ranks[0],
        )  # fmt: skip


def _common(network: Cell) -> list[Parameter]:
    """What all ranks must have alike: parts of divided states are each rank's own, and what other stages of a
    pipeline have is not here.
    """
    return [p for p in network.get_parameters() if p.share is None and not p.elsewhere]


def _digest(network: Cell) -> bytes:
    """Of all weights."""
    digest = hashlib.blake2b(digest_size=16)
    for parameter in _common(network):
        digest.update(f"{parameter.dtype} {parameter.shape}".encode())
        digest.update(parameter.asnumpy().tobytes())
    return digest.digest()
