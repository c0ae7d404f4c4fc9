"""What operators mean that the importers name themselves because the running model alone knows their sizes.

In NumPy, after the definitions of ONNX and TensorFlow Lite: `--check` holds the runtime against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycelia_lite.converter.meanings import arrays, chance, detection, images, places, signals  # noqa: F401
from mycelia_lite.converter.meanings.table import MEANINGS


def computed(kind: str, fields: Mapping[str, Any], inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """The results of an operator of the file; of a Custom node `fields` has its `type` and `attr`.

    Errors: NotImplementedError for an operator that only a program of somebody else knows, or whose results
    are others in each run; ValueError, IndexError for inputs that do not fit it.
    """
    attributes = dict(fields)
    if kind == "Custom":
        kind, attributes = attributes["type"], dict(attributes.get("attr", ()))
    meaning = MEANINGS.get(kind)
    if meaning is None:
        raise NotImplementedError(f"what the operator '{kind}' computes is known to the runtime alone")
    made = meaning(*inputs, **attributes)
    return made if isinstance(made, tuple) else (made,)
