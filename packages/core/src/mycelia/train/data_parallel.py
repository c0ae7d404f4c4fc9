"""How a training by several processes begins: with the same number of steps and the same weights on all."""

from __future__ import annotations

import hashlib

from mycelia.engine.base import errors, log, parallel_settings
from mycelia.engine.communication import world
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
    if parallel_settings.get_auto_parallel_context("parameter_broadcast"):
        for parameter in _common(network):
            parameter.set_data(broadcast_from(parameter, root=0))
        return
    digests = communicator.all_gather_object(_digest(network))
    others = [rank for rank, digest in enumerate(digests) if digest != digests[0]]
    if others and communicator.rank == 0:
        log.warning(
            "Model.train: ranks %s begin with other weights than rank 0: set_seed on all of them, or "
            "set_auto_parallel_context(parameter_broadcast=True)", others,
        )  # fmt: skip


def _common(network: Cell) -> list[Parameter]:
    """What all ranks must have alike: parts of divided states are each rank's own."""
    return [parameter for parameter in network.get_parameters() if parameter.share is None]


def _digest(network: Cell) -> bytes:
    """Of all weights."""
    digest = hashlib.blake2b(digest_size=16)
    for parameter in _common(network):
        digest.update(f"{parameter.dtype} {parameter.shape}".encode())
        digest.update(parameter.asnumpy().tobytes())
    return digest.digest()
