"""`Metric`, the protocol of all metrics, and what they share."""

from __future__ import annotations

import functools

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor

#: Keeps divisions by counts finite: the smallest normal float64, as MindSpore's metrics use.
EPS = float(np.finfo(np.float64).tiny)


class Metric:
    """Base class: `clear` starts anew, `update` takes a batch, `eval` gives the value so far.

    `set_indexes` chooses which of update's arguments are used.
    `eval` before any `update` raises RuntimeError.
    """

    #: Names of what the updates come to, by what becomes of it when two metrics are merged: it is added,
    #: collected in lists, or, where an update replaces the one before, replaced.
    _added: tuple[str, ...] = ()
    _collected: tuple[str, ...] = ()
    _replaced: tuple[str, ...] = ()

    def __init__(self):
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Which arguments of `update` are used; None: all."""
        return self._indexes

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Use these arguments of `update`, in this order; returns the metric."""
        if not isinstance(indexes, list) or not all(
            isinstance(i, int) and not isinstance(i, bool) for i in indexes
        ):
            raise errors.value_error(
                "For 'set_indexes', the argument 'indexes' must be a list and all its elements must be int, "
                f"please check whether it is correct: it is {indexes!r}"
            )
        self._indexes = indexes
        return self

    def clear(self) -> None:
        """Forget all updates."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "clear() is not defined")

    def update(self, *inputs) -> None:
        """Take one batch."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "update() is not defined")

    def eval(self):
        """The value over all batches so far."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "eval() is not defined")

    def merge(self, other: Metric) -> Metric:
        """Take the updates of `other` as if they had come after the own ones, and give the metric: workers
        that saw a part of the data each come to one value.

        Errors: TypeError for a metric of another type, ValueError for one with other settings,
        NotSupportedError where the class names nothing that is merged.
        """
        self._require_same(other)
        for name in self._added:
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))
        for name in self._collected:
            setattr(self, name, [*getattr(self, name), *getattr(other, name)])
        for name in self._replaced:
            if getattr(other, name) is not None:
                setattr(self, name, getattr(other, name))
        return self

    def _require_same(self, other: Metric) -> None:
        owner = type(self).__name__
        if type(other) is not type(self):
            raise errors.type_error(owner, f"merge() takes a {owner}, but got {type(other).__name__}")
        if not (self._added or self._collected or self._replaced):
            raise errors.error(errors.NotSupportedError, owner, "merge() is not defined")
        mine, its = self._settings(), other._settings()
        if mine != its:
            raise errors.value_error(owner, f"merge() takes one with the settings {mine}, but got {its}")

    def _settings(self) -> dict:
        return {k: v for k, v in vars(self).items() if not k.startswith("_") and k not in self._added}

    def __call__(self, *inputs):
        """The value of one batch alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def _convert_data(self, data) -> np.ndarray:
        """The array of a Tensor, a list or an array, for metrics of users. Errors: TypeError for the rest."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if not isinstance(data, (list, np.ndarray)):
            raise errors.type_error(
                type(self).__name__,
                f"a batch must be a Tensor, a list or an array, but got {type(data).__name__}",
            )
        return np.asarray(data)

    def _arrays(self, inputs: tuple, count: int) -> tuple[np.ndarray, ...]:
        """The inputs as arrays. ValueError when there are not `count`."""
        if len(inputs) != count:
            raise errors.value_error(
                type(self).__name__, f"update() takes {count} inputs, but got {len(inputs)}"
            )
        return tuple(as_array(v, type(self).__name__) for v in inputs)

    def _require_updates(self, count: int) -> None:
        if not count:
            raise errors.runtime_error(type(self).__name__, "eval() was called before any update()")


def _sum(a, b):
    """Of counts and sums, None standing for none."""
    if a is None or b is None:
        return b if a is None else a
    return a or b if isinstance(a, bool) else a + b


def as_array(value, owner: str) -> np.ndarray:
    """A Tensor, array or list as an array.

    Errors: TypeError for anything else, ValueError for ragged lists.
    """
    if isinstance(value, Tensor):
        return value.asnumpy()
    if isinstance(value, (np.ndarray, list)):
        try:
            return np.asarray(value)
        except ValueError:
            raise errors.value_error(owner, "inputs must be regular: rows of one length") from None
    raise errors.type_error(
        owner, f"the input data type must be tensor, list or numpy.ndarray, but got {type(value).__name__}"
    )


def rearrange_inputs(func):
    """Decorator of `update`: pass the arguments that `set_indexes` chose."""

    @functools.wraps(func)
    def wrapper(self, *inputs):
        if self.indexes is None:
            return func(self, *inputs)
        if len(inputs) <= max(self.indexes):
            raise errors.value_error(
                type(self).__name__,
                f"indexes {self.indexes} need more than the {len(inputs)} inputs of update()",
            )
        return func(self, *(inputs[i] for i in self.indexes))

    return wrapper


def one_hot_pair(
    owner: str, predictions: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """One-hot predictions (by the largest score) and labels [N, C], and C.
    ValueError for other shapes or classes.
    """
    if (
        predictions.ndim != 2
        or labels.ndim not in (1, 2)
        or (labels.ndim == 2 and labels.shape != predictions.shape)
    ):
        raise errors.value_error(
            owner,
            "predictions must be [N, C] and labels [N] or [N, C], but the shapes are "
            f"{predictions.shape} and {labels.shape}",
        )
    classes = predictions.shape[1]
    truth = labels.argmax(1) if labels.ndim == 2 else labels.astype(np.int64)
    if truth.size and (truth.min() < 0 or truth.max() >= classes):
        raise errors.value_error(
            owner, f"labels must be in [0, {classes}), but got {int(truth.min())} to {int(truth.max())}"
        )
    eye = np.eye(classes, dtype=np.int64)
    return eye[predictions.argmax(1)], eye[truth], classes
