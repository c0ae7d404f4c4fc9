"""Going on in the middle of an epoch with another number of shards: what is left is dealt out anew.

The ranks read in step, so a state of one of them tells how far all are. All ranks shuffle alike, so each
knows which rows are left without asking the others.
"""

from __future__ import annotations

import numpy as np

from mycelia.dataset.batching import BatchDataset
from mycelia.dataset.columns import ProjectDataset, RenameDataset
from mycelia.dataset.mapping import MapDataset
from mycelia.dataset.samplers import DistributedSampler, RandomSampler, SequentialSampler
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia.engine.base import errors


def dealt(root) -> tuple[MappableDataset, int] | None:
    """The source whose rows are dealt to shards, and how many of them make one row of `root`; None where rows
    do not correspond (a filter, a shuffle of rows, a repetition, ...).
    """
    rows, node = 1, root
    while not isinstance(node, MappableDataset):
        if isinstance(node, BatchDataset) and not callable(node.batch_size):
            rows *= node.batch_size
        elif not isinstance(node, (MapDataset, ProjectDataset, RenameDataset)):
            return None
        node = node.children[0]
    plain = type(node.sampler) in (DistributedSampler, RandomSampler, SequentialSampler)
    simple = plain and node.sampler.child_sampler is None and not node.sampler.num_samples
    return (node, rows) if simple and type(node).order is MappableDataset.order else None


def place(root, epoch: int) -> dict:
    """What a state tells about shards: how many there are, and the part of the epoch they share."""
    counts = [_count(node) for node in root.walk() if not node.children]
    rest = next((r for node in root.walk() if (r := getattr(node, "rest", None)) is not None), None)
    of_epoch = rest is not None and rest.epoch == epoch
    return {"shards": max(counts), "rest": [rest.read, rest.start] if of_epoch else None}


def _count(source) -> int:
    sampler = getattr(source, "sampler", None)
    return getattr(sampler, "num_shards", None) or getattr(source, "num_shards", None) or 1


def go_on(root, state: dict) -> int:
    """Let `root` go on at a state of as many or other shards; the row of the epoch that it goes on with.

    Errors: ValueError where rows do not correspond to the source's.
    """
    epoch, row, before, now = state["epoch"], state["row"], state["shards"], place(root, 0)["shards"]
    if now == before and state["rest"] is None:
        return row
    found = dealt(root)
    if found is None:
        raise errors.value_error(
            "load_state_dict",
            f"a state of {before} shards cannot go on with {now} here",
            hint="only map, project, rename and batch may stand above a source with a plain sampler",
        )
    source, rows = found
    read, start = state["rest"] or (0, 0)
    if now != before:
        read += (row * rows - start) * before
        row = read // (rows * now)
        start = row * rows
    source.rest = Rest(epoch, read, start)
    return row


class Rest:
    """The rows of one epoch after the first `read` of all shards, behind `start` that are passed over."""

    def __init__(self, epoch: int, read: int, start: int):
        self.epoch, self.read, self.start = epoch, read, start

    def order(self, sampler, size: int, rng: np.random.Generator) -> np.ndarray:
        """Numbers of the rows of this shard."""
        if isinstance(sampler, DistributedSampler):
            whole, count, mine = sampler.whole(size, rng), sampler.num_shards, sampler.shard_id
        else:
            whole, count, mine = sampler.choose(size, rng), 1, 0
        left = whole[self.read :]
        each = -(-len(left) // count)
        places = mine + count * np.arange(each)
        return np.concatenate([np.zeros(self.start, np.int64), left[places % max(1, len(left))]])
