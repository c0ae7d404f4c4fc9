"""Images of a batch written where they belong: the last step of a map gets the place of its row in the batch.

Only native steps that make a new image anyway look for a place; what others give is copied into the batch.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mycelia.dataset.batching import stacked
from mycelia.dataset.execution.workers import Failure


class Batches:
    """Batches of `size` rows of a map. `made_column`: which of the columns `names` the map makes."""

    def __init__(self, size: int, names: list[str], made_column: int):
        self._size, self._names, self._at = size, names, made_column
        self._like: tuple | None = None  # shape and dtype of an image, once one is there
        self._waiting: list[np.ndarray | None] = []  # batches whose rows are under way

    def placed(self, rows: Iterator[tuple]) -> Iterator[tuple]:
        """The rows, each with its place."""
        for number, row in enumerate(rows):
            k = number % self._size
            if k == 0:
                batch = None if self._like is None else np.empty((self._size, *self._like[0]), self._like[1])
                self._waiting.append(batch)
            yield (*row, None if batch is None else batch[k])

    def joined(self, pairs: Iterator[tuple], drop_remainder: bool, failed) -> Iterator[tuple]:
        """The batches of pairs of a placed row and its results; ``failed(failure, row)`` gives an error."""
        number = 0
        while group := list(itertools.islice(pairs, self._size)):
            for k, (_, made) in enumerate(group):
                if type(made) is Failure:
                    raise failed(made, number + k)
            number += len(group)
            batch = self._waiting.pop(0)
            if len(group) < self._size and drop_remainder:
                return
            columns = [list(c) for c in zip(*(row[:-1] for row, _ in group))]
            images = [made[0] for _, made in group]
            columns[self._at] = self._filled(batch, images, [row[-1] for row, _ in group])
            yield tuple([stacked(c, n, "Dataset.batch") for c, n in zip(columns, self._names)])

    def _filled(self, batch: np.ndarray | None, images: list[np.ndarray], places: list):
        """The images as an array: `batch`, if they fit; the list itself else."""
        first = images[0]
        self._like = None if first.dtype.kind not in "biufc" else (first.shape, first.dtype)
        if batch is None or any(i.shape != batch.shape[1:] or i.dtype != batch.dtype for i in images):
            return images
        for image, its_place in zip(images, places):
            if image is not its_place:
                its_place[...] = image
        return batch if len(images) == len(batch) else batch[: len(images)].copy()
