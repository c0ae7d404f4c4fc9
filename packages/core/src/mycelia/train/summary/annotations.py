"""Boxes and masks over an image, as fields of its message that other readers pass over.

A layer has a name (1), boxes as JSON (2): ``{"boxes": [[x0, y0, x1, y1], ...], "labels": [...], "scores":
[...]}``, in pixels from the upper left corner, and a mask as a PNG of eight bits (3), whose pixels are
numbers of classes, with what these are called as JSON (4): ``{"1": "cat"}``. Class 0 is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from mycelia.engine.base import errors, log
from mycelia.engine.base.wire import field, fields
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train.summary import values
from mycelia.train.summary.events import text

FIELD = 100  # of the message Image
_OWNER = "SummaryRecord.add_value"
_CLASSES = 256


def annotated(message: bytes, name: str, shape: tuple[int, ...], boxes: Any, masks: Any) -> bytes:
    """A Summary with an image, with layers over it. `message`: the same without; `shape`: [N, C, H, W] of the
    images, which stand side by side: N must be 1.  Errors: TypeError, ValueError.
    """
    if shape[0] != 1:
        raise errors.value_error(_OWNER, f"boxes and masks are for one image, but the shape is {shape}")
    layers: dict[str, bytes] = {}
    for group, given in _groups("boxes", boxes):
        layers[group] = _boxes(group, given)
    for group, given in _groups("masks", masks):
        layers[group] = layers.get(group, b"") + _mask(group, given, shape[2:])
    found = b"".join(field(FIELD, text(1, group) + layer) for group, layer in layers.items())
    return values.value(name, field(4, _image_of(message) + found))


def _image_of(summary: bytes) -> bytes:
    """The message Image of a Summary with one value."""
    one = next(content for number, content in fields(memoryview(summary)) if number == 1)
    return bytes(next(content for number, content in fields(one) if number == 4))


def _groups(what: str, given: Any) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise errors.type_error(_OWNER, f"{what} must be a dict by names, but got {type(given).__name__}")
    for group in given:
        if not isinstance(group, str) or not group:
            raise errors.type_error(_OWNER, f"a name of {what} must be a text, but got {group!r:.60}")
    return list(given.items())


def _array(what: str, given: Any) -> np.ndarray:
    try:
        found = given.asnumpy() if isinstance(given, Tensor) else np.asarray(given)
    except ValueError:
        raise errors.value_error(_OWNER, f"{what} must be an array of numbers") from None
    if found.dtype.kind not in "buif":
        raise errors.type_error(_OWNER, f"{what} must be numbers, but are {found.dtype}")
    return found


def _boxes(group: str, given: Any) -> bytes:
    told = given if isinstance(given, Mapping) else {"boxes": given}
    unknown = set(told) - {"boxes", "labels", "scores"}
    if unknown or "boxes" not in told:
        raise errors.value_error(
            _OWNER, f"boxes[{group!r}] has boxes, labels and scores, but got {set(told)}"
        )
    boxes = _array(f"boxes[{group!r}]", told["boxes"]).astype(np.float64)
    boxes = boxes.reshape(0, 4) if boxes.size == 0 else boxes
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise errors.shape_error(
            _OWNER, f"boxes[{group!r}] must have rows of x0, y0, x1, y1, but the shape is {boxes.shape}"
        )
    labels, scores = (_each(group, name, told.get(name), len(boxes)) for name in ("labels", "scores"))
    is_finite = np.isfinite(boxes).all(1)
    if scores is not None:
        scores = _array(f"scores of boxes[{group!r}]", scores).astype(np.float64)
        is_finite &= np.isfinite(scores)
    if not is_finite.all():
        log.logger(__name__).warning(
            "%d of %d boxes of %r are left out: they are not finite", (~is_finite).sum(), len(boxes), group
        )
    content: dict[str, Any] = {"boxes": boxes[is_finite].tolist()}
    if labels is not None:
        content["labels"] = [str(label) for label, kept in zip(labels, is_finite) if kept]
    if scores is not None:
        content["scores"] = scores[is_finite].tolist()
    return text(2, json.dumps(content))


def _each(group: str, name: str, given: Any, count: int) -> list | None:
    if given is None:
        return None
    found = list(given.asnumpy() if isinstance(given, Tensor) else given)
    if len(found) != count:
        raise errors.value_error(
            _OWNER, f"{name} of boxes[{group!r}] must be {count}, one a box, but there are {len(found)}"
        )
    return found


def _mask(group: str, given: Any, size: tuple[int, ...]) -> bytes:
    told = given if isinstance(given, Mapping) else {"mask": given}
    unknown = set(told) - {"mask", "labels"}
    if unknown or "mask" not in told:
        raise errors.value_error(_OWNER, f"masks[{group!r}] has mask and labels, but got {set(told)}")
    mask = _array(f"masks[{group!r}]", told["mask"])
    if mask.shape != tuple(size):
        raise errors.shape_error(
            _OWNER, f"masks[{group!r}] must have the image's {list(size)}, but has {list(mask.shape)}"
        )
    if mask.dtype.kind == "f" or mask.size and not 0 <= mask.min() <= mask.max() < _CLASSES:
        raise errors.value_error(
            _OWNER, f"masks[{group!r}] must be whole numbers of classes, 0 to {_CLASSES - 1}"
        )
    (message,) = values.encoded([("mask", "image", mask.astype(np.uint8)[None, None])])
    png = next(content for number, content in fields(memoryview(_image_of(message))) if number == 4)
    found = field(3, bytes(png))
    labels = told.get("labels")
    if labels is not None:
        if not isinstance(labels, Mapping) or not all(isinstance(k, (int, np.integer)) for k in labels):
            raise errors.type_error(
                _OWNER, f"labels of masks[{group!r}] must be a dict from classes to texts"
            )
        found += text(4, json.dumps({str(int(k)): str(v) for k, v in labels.items()}))
    return found
