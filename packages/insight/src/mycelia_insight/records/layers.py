"""Boxes and masks over an image, `mycelia/train/summary/annotations.py` in core writes them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import orjson

from mycelia_insight.records.images import Picture, picture
from mycelia_insight.records.wire import BYTES, Broken, fields, message, plain, text

FIELD = 100  # of the message Image
MOST_BOXES = 2_000  # of a layer that are told, those with the best scores
_MOST_LAYERS = 32
_MOST_JSON = 8 << 20  # bytes
_LONGEST = 100  # characters of a label
_FARTHEST = 1e6  # pixels


@dataclass(frozen=True, slots=True)
class Box:
    """In pixels from the upper left corner; score: None if there is none."""

    x: float
    y: float
    width: float
    height: float
    label: str
    score: float | None


@dataclass(slots=True)
class Layer:
    """Boxes and, if `mask`, a picture of classes, by whose numbers `classes` has names. left_out: boxes that
    are too many, or have coordinates that are not numbers.
    """

    name: str
    boxes: list[Box] = field(default_factory=list)
    left_out: int = 0
    mask: bytes = b""
    classes: dict[int, str] = field(default_factory=dict)


def layers(image: bytes, most: int = MOST_BOXES) -> list[Layer]:
    """Of a message Image, in their order; those after the first 32 are passed over. `most`: boxes of each,
    those with the best scores.  Errors: Broken.
    """
    found = (value for number, kind, value in fields(image) if number == FIELD and kind == BYTES)
    return [_layer(bytes(one), most) for one, _ in zip(found, range(_MOST_LAYERS))]


def told(layer: Layer) -> dict:
    """As the interface has it; of the mask only whether there is one."""
    return {
        "name": layer.name,
        "boxes": [asdict(box) for box in layer.boxes],
        "left_out": layer.left_out,
        "mask": bool(layer.mask),
        "classes": {str(number): name for number, name in layer.classes.items()},
    }


def mask(image: bytes, number: int) -> Picture:
    """The mask of a layer.  Errors: Broken; IndexError: there is none."""
    found = layers(image)
    if not 0 <= number < len(found) or not found[number].mask:
        raise IndexError(f"there is no mask {number}")
    return picture(found[number].mask)


def _layer(data: bytes, most: int) -> Layer:
    made = Layer("")
    for number, value in plain(data):
        if number == 1:
            made.name = text(value)[:_LONGEST]
        elif number == 2:
            made.boxes, made.left_out = _boxes(_json(message(value)), most)
        elif number == 3:
            made.mask = message(value)
        elif number == 4:
            made.classes = {
                int(key): str(name)[:_LONGEST]
                for key, name in _json(message(value)).items()
                if key.isascii() and key.isdigit() and len(key) <= 3
            }
    return made


def _json(data: bytes) -> dict:
    if len(data) > _MOST_JSON:
        raise Broken(f"a layer has {len(data)} bytes of boxes; at most {_MOST_JSON} are read")
    try:
        found = orjson.loads(data)
    except ValueError as error:
        raise Broken(f"a layer cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise Broken("what a layer says must be an object")
    return found


def _boxes(told: dict, most: int) -> tuple[list[Box], int]:
    rows, labels, scores = (_list(told.get(name)) for name in ("boxes", "labels", "scores"))
    found: list[Box] = []
    for at, row in enumerate(rows):
        ends = _numbers(row)
        if ends is None:
            continue
        (x0, x1), (y0, y1) = sorted(ends[::2]), sorted(ends[1::2])
        label = labels[at] if at < len(labels) else ""
        score = scores[at] if at < len(scores) and _is_number(scores[at]) else None
        found.append(Box(x0, y0, x1 - x0, y1 - y0, str(label)[:_LONGEST], score))
    if len(found) > most:
        found.sort(key=lambda one: -1.0 if one.score is None else one.score, reverse=True)
        del found[most:]
    return found, len(rows) - len(found)


def _list(found: object) -> list:
    return found if isinstance(found, list) else []


def _is_number(one: object) -> bool:
    return isinstance(one, (int, float)) and not isinstance(one, bool) and math.isfinite(one)


def _numbers(row: object) -> list[float] | None:
    """Four coordinates, within what can be drawn; None of anything else."""
    if not isinstance(row, list) or len(row) != 4 or not all(map(_is_number, row)):
        return None
    return [min(max(float(one), -_FARTHEST), _FARTHEST) for one in row]
