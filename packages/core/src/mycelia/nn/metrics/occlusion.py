"""`OcclusionSensitivity`: which parts of an image a network looks at (Zeiler and Fergus 2014)."""

from __future__ import annotations

import itertools

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class OcclusionSensitivity(Metric):
    """How much the score of a label falls when the surroundings of each place are covered by `pad_val`.

    update(model, image, label): image [1, ...], label an int -> an array of the image's shape without the
    batch, or of the inclusive bounds ``b_box = [min, max, ...]`` per dimension (-1: all). `margin`: the
    cover of place i reaches from i - margin up to, not including, i + margin; an int or one per dimension.
    `n_batch`: covered images per call. An update replaces the one before.
    Errors: RuntimeError for a batch other than 1.
    """

    _replaced = ("_falls",)

    def __init__(self, pad_val: float = 0.0, margin=2, n_batch: int = 128, b_box=None):
        super().__init__()
        owner = "OcclusionSensitivity"
        if isinstance(pad_val, bool) or not isinstance(pad_val, (int, float)):
            raise errors.type_error(owner, f"pad_val must be a float, but got {pad_val!r}")
        margins = margin if isinstance(margin, (list, tuple)) else [margin]
        if any(isinstance(m, bool) or not isinstance(m, int) for m in margins):
            raise errors.type_error(owner, f"margin must be an int or a list of them, but got {margin!r}")
        if any(m < 0 for m in margins):
            raise errors.value_error(owner, f"margin must be at least 0, but got {margin!r}")
        if isinstance(n_batch, bool) or not isinstance(n_batch, int):
            raise errors.type_error(owner, f"n_batch must be an int, but got {n_batch!r}")
        if n_batch < 1:
            raise errors.value_error(owner, f"n_batch must be positive, but got {n_batch}")
        if b_box is not None and (
            not isinstance(b_box, (list, tuple)) or any(not isinstance(b, int) for b in b_box)
        ):
            raise errors.type_error(owner, f"b_box must be a list of ints or None, but got {b_box!r}")
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        self.clear()

    def clear(self):
        self._falls = None

    @rearrange_inputs
    def update(self, *inputs):
        owner = "OcclusionSensitivity"
        if len(inputs) != 3:
            raise errors.value_error(
                owner, f"update() takes 3 inputs (model, image, label), but got {len(inputs)}"
            )
        model = inputs[0]
        if not callable(model):
            raise errors.type_error(owner, f"model must be a Cell, but got {type(model).__name__}")
        image, label = self._arrays(inputs[1:], 2)
        if not image.ndim or len(image) != 1:
            raise errors.runtime_error(owner, f"the image must be [1, ...], but its shape is {image.shape}")
        if label.size != 1:
            raise errors.runtime_error(owner, f"one label is needed for one image, but got {label.size}")
        label = int(label.reshape(-1)[0])
        shape = image.shape[1:]
        margins = self.margin if isinstance(self.margin, (list, tuple)) else [self.margin] * len(shape)
        if len(margins) != len(shape):
            raise errors.value_error(
                owner,
                f"margin needs {len(shape)} numbers for an image of shape {image.shape}, but got "
                f"{list(margins)}",
            )
        ranges = self._ranges(shape)
        whole = _scores(model, image)
        if whole.ndim != 2 or not 0 <= label < whole.shape[1]:
            raise errors.value_error(
                owner, f"the model must give scores [1, C] with C > {label}, but gives {whole.shape}"
            )
        places = itertools.product(*ranges)
        falls = []
        while batch := list(itertools.islice(places, self.n_batch)):
            covered = np.repeat(image, len(batch), 0)
            for row, place in zip(covered, batch):
                row[tuple(slice(max(0, i - m), i + m) for i, m in zip(place, margins))] = self.pad_val
            falls.append(whole[0, label] - _scores(model, covered)[:, label])
        self._falls = np.concatenate(falls).reshape([len(r) for r in ranges])

    def _ranges(self, shape: tuple[int, ...]) -> list[range]:
        if self.b_box is None:
            return [range(n) for n in shape]
        if len(self.b_box) != 2 * len(shape):
            raise errors.value_error(
                "OcclusionSensitivity",
                f"b_box needs a minimum and a maximum for each of {len(shape)} dimensions",
            )
        found = []
        for n, low, high in zip(shape, self.b_box[::2], self.b_box[1::2]):
            low, high = (0 if low == -1 else low), (n - 1 if high == -1 else high)
            if not 0 <= low <= high < n:
                raise errors.value_error(
                    "OcclusionSensitivity", f"b_box has {low} to {high}, but the dimension has {n} places"
                )
            found.append(range(low, high + 1))
        return found

    def eval(self):
        self._require_updates(self._falls is not None)
        return self._falls


def _scores(model, images: np.ndarray) -> np.ndarray:
    return model(Tensor(images)).asnumpy()
