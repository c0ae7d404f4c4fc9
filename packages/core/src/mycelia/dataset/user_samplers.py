"""Samplers that users write: a class with `__iter__`, or anything that gives row numbers."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.samplers import BuiltinSampler, inside
from mycelia.engine.base import errors


class Sampler(BuiltinSampler):
    """Base of samplers in Python: ``__iter__`` gives row numbers; `dataset_size` is the number of rows.

    `num_samples`, or ``__len__`` if there is one, says how many are taken; RuntimeError if there are fewer.
    """

    def __init__(self, num_samples: int | None = None):
        super().__init__(num_samples)
        self.dataset_size = 0

    def __iter__(self):
        raise errors.error(errors.NotSupportedError, type(self).__name__, "__iter__() is not defined")

    def choose(self, size, rng):
        self.dataset_size = size
        order = np.asarray([int(i) if np.ndim(i) == 0 else int(np.ravel(i)[0]) for i in self], np.int64)
        wanted = self._wanted()
        if wanted is not None and len(order) < wanted:
            raise errors.runtime_error(
                type(self).__name__,
                f"The actual amount of data read from generator {len(order)} is different from generator.len "
                f"{wanted}",
            )
        return inside(type(self).__name__, order[:wanted], size)

    def _wanted(self) -> int | None:
        """How many rows are announced, None for all that come."""
        return self.num_samples or (len(self) if hasattr(self, "__len__") else None)

    def count(self, size):
        wanted = self._wanted()
        return len(self.choose(size, np.random.default_rng(0))) if wanted is None else wanted


class IterSampler(Sampler):
    """Row numbers of any iterable."""

    def __init__(self, sampler, num_samples: int | None = None):
        super().__init__(num_samples)
        self.sampler = sampler

    def _wanted(self):
        return self.num_samples or (len(self.sampler) if hasattr(self.sampler, "__len__") else None)

    def __iter__(self):
        if hasattr(self.sampler, "__next__"):  # it gives its numbers only once
            self.sampler = list(self.sampler)
        return iter(self.sampler)
