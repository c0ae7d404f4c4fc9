"""The words that summaries know."""

from __future__ import annotations

from enum import Enum


class PluginEnum(Enum):
    """What `SummaryRecord.add_value` takes."""

    GRAPH = "graph"
    SCALAR = "scalar"
    IMAGE = "image"
    TENSOR = "tensor"
    HISTOGRAM = "histogram"
    TRAIN_LINEAGE = "train_lineage"
    EVAL_LINEAGE = "eval_lineage"
    CUSTOM_LINEAGE_DATA = "custom_lineage_data"
    DATASET_GRAPH = "dataset_graph"
    LANDSCAPE = "landscape"


class ModeEnum(Enum):
    """What a run does: in training values of operators are recorded."""

    TRAIN = "train"
    EVAL = "eval"
