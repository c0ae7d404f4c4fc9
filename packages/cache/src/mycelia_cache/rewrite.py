"""The cache in a pipeline: where it may stand, and the nodes that take the place of those below it.

Rows with numbers: CacheLookup draws the numbers by the source's sampler and asks the cache for them, the
others come from the source through the operators below the cache, and CacheMerge puts both into the
sampler's order. Other sources: Cache stores all rows once, in the order of the files, and serves them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from mycelia.dataset.cache import with_children
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.samplers import BuiltinSampler, Shuffle
from mycelia.dataset.sources.numbered import MappableDataset
from mycelia_cache.numbered import CacheLookup, CacheMerge, Chosen
from mycelia_cache.placement import check
from mycelia_cache.stored import Cache

if TYPE_CHECKING:
    from mycelia_cache.client import CacheClient


def rewritten(client: CacheClient, node: Dataset) -> Dataset:
    """The node that serves the rows of `node`, whose cache is `client`'s."""
    source = check(node)
    inner = copy.copy(node)
    inner.cache = None
    if isinstance(source, MappableDataset):
        lookup = CacheLookup(client, node, source)
        chosen = Chosen()
        return CacheMerge(client, node, lookup, _replaced(inner, source, _reading(source, chosen)), chosen)
    return Cache(client, node, source, _replaced(inner, source, _whole(source)))


def _replaced(node: Dataset, source: Dataset, other: Dataset) -> Dataset:
    """The nodes down to the source with another one in its place. A source that is its own top is that."""
    if not node.children:
        return other
    return with_children(node, [_replaced(child, source, other) for child in node.children])


def _reading(source: MappableDataset, sampler: BuiltinSampler) -> MappableDataset:
    """The same source, which reads what a sampler of ours says."""
    source.source_size()  # sources that open their files late choose a sampler then
    clone = with_children(source, [])
    clone.cache, clone.sampler = None, sampler
    if hasattr(clone, "_given_sampler"):
        clone._given_sampler = sampler
    return clone


def _whole(source: Dataset) -> Dataset:
    """The same source, all of it in the order of its files."""
    clone = with_children(source, [])
    clone.cache = clone.num_samples = clone.num_shards = clone.shard_id = None
    clone.shuffle_mode, clone.num_parallel_workers = Shuffle.FALSE, 1
    return clone
