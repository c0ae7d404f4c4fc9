"""What a value of an event file is. Numbers are those of `Kind` in native/src/events.h."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """Kinds of values; `name.lower()` is how the interface calls them."""

    SCALAR = 0
    IMAGE = 1
    HISTOGRAM = 2
    TENSOR = 3
    LANDSCAPE = 4
    GRAPH = 5
    EXPLAIN = 6
    TRAIN_LINEAGE = 7
    EVALUATION_LINEAGE = 8
    DATASET_GRAPH = 9
    USER_DEFINED = 10
    AUDIO = 11
    TEXT = 12
    PARAMETERS = 13
    OTHER = 14


class Dialect(IntEnum):
    """Whose messages an event file has."""

    UNKNOWN = 0
    MINDSPORE = 1
    TENSORBOARD = 2
