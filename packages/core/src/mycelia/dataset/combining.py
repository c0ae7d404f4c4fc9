"""Nodes that make one dataset of several: zip, concat, flat_map."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable

import numpy as np

from mycelia.dataset import nodes
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.dataset.samplers import BuiltinSampler, DistributedSampler, RandomSampler
from mycelia.engine.base import errors


class ZipDataset(Dataset):
    """Columns side by side."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        names = self.get_col_names()
        self._twice = sorted({n for n in names if names.count(n) > 1})

    def get_col_names(self):
        return [name for child in self.children for name in child.get_col_names()]

    def get_dataset_size(self):
        return min(child.get_dataset_size() for child in self.children)

    def rows(self, epoch):
        if self._twice:
            raise errors.runtime_error(
                "zip", f"Column name: '{self._twice[0]}' is duplicate: rename it in one of the datasets first"
            )
        return self.rows_from(epoch, 0)

    def rows_from(self, epoch, start):
        for parts in zip(*(c.rows_from(epoch, start) if start else c.rows(epoch) for c in self.children)):
            yield tuple(itertools.chain.from_iterable(parts))

    def origin(self, epoch, number):
        return "; ".join(filter(None, (child.origin(epoch, number) for child in self.children)))


class ConcatDataset(Dataset):
    """Rows one after the other; `use_sampler` shares or shuffles all of them."""

    def __init__(self, datasets):
        super().__init__(*datasets)
        self.sampler: BuiltinSampler | None = None

    def get_dataset_size(self):
        total = sum(child.get_dataset_size() for child in self.children)
        return len(self._share(range(total)))

    def use_sampler(self, sampler: BuiltinSampler) -> None:
        """Read every n-th of all rows (a `DistributedSampler`), or all in random order (a `RandomSampler`
        without replacement). Errors: TypeError for another sampler, ValueError for its arguments.
        """
        if not isinstance(sampler, (DistributedSampler, RandomSampler)):
            raise errors.type_error(
                "concat.use_sampler",
                f"a DistributedSampler or RandomSampler is taken, but got {type(sampler).__name__}",
            )
        if isinstance(sampler, RandomSampler) and sampler.replacement:
            raise errors.value_error("concat.use_sampler", "the RandomSampler must be without replacement")
        if sampler.num_samples:
            raise errors.value_error("concat.use_sampler", "the sampler's num_samples must not be given")
        self.sampler = sampler

    def is_sharded(self):
        return self.sampler is not None and self.sampler.is_sharded()

    def _all(self, epoch):
        names, kinds = self.children[0].get_col_names(), None
        for child in self.children:
            if child.get_col_names() != names:
                raise errors.runtime_error(
                    "concat", f"the datasets have different columns: {names} and {child.get_col_names()}"
                )
            rows = iter(child.rows(epoch))
            for first in itertools.islice(rows, 1):
                found = [_kind(column) for column in first]
                kinds = kinds or found
                if found != kinds:
                    raise errors.runtime_error(
                        "concat",
                        f"the datasets have columns of different types or ranks: {kinds} and {found}",
                    )
                yield first
            yield from rows

    def rows(self, epoch):
        if self.sampler is None:
            yield from self._all(epoch)
            return
        rng = self.generator(epoch)
        rows = list(self._all(epoch))
        for i in self._share(rng.permutation(len(rows)) if self.sampler.is_shuffled() else range(len(rows))):
            yield rows[int(i)]

    def _share(self, order):
        """What is this process's, without filling up: the shares of processes may differ by a row."""
        if isinstance(self.sampler, DistributedSampler):
            return order[self.sampler.shard_id :: self.sampler.num_shards]
        return order


def _kind(column) -> tuple[str, int]:
    array = np.asarray(column)
    return ("text" if array.dtype.kind in "SU" else array.dtype.name), array.ndim


def zip_datasets(datasets) -> ZipDataset:
    """Columns of the datasets in a tuple side by side."""
    nodes.of_type("zip", "datasets", datasets, tuple)
    if len(datasets) < 2:
        raise errors.value_error("zip", f"at least two datasets are needed, but got {len(datasets)}")
    return ZipDataset(datasets)


@dataset_methods
class Combining:
    """Methods that make one dataset of several."""

    def zip(self, datasets) -> Dataset:
        """Columns of several datasets side by side; the shortest decides the size."""
        nodes.of_type("Dataset.zip", "datasets", datasets, tuple, Dataset)
        others = datasets if isinstance(datasets, tuple) else (datasets,)
        return ZipDataset((self, *others))

    def concat(self, datasets) -> Dataset:
        """The rows of several datasets one after the other."""
        nodes.of_type("Dataset.concat", "datasets", datasets, list, Dataset)
        others = datasets if isinstance(datasets, list) else [datasets]
        return ConcatDataset((self, *others))

    def __add__(self, other: Dataset) -> Dataset:
        return self.concat(other)

    def flat_map(self, func: Callable) -> Dataset:
        """The datasets that `func` makes of each row, one after the other."""
        if not callable(func) or inspect.isclass(func):
            raise errors.type_error("Dataset.flat_map", f"func must be a function, but got {func!r}")
        made = []
        for row in self.create_tuple_iterator(num_epochs=1, output_numpy=True):
            dataset = func(*row)
            nodes.of_type("Dataset.flat_map", "what func returns", dataset, Dataset)
            made.append(dataset)
        if not made:
            raise errors.runtime_error("Dataset.flat_map", "the dataset is empty")
        return made[0] if len(made) == 1 else ConcatDataset(made)
