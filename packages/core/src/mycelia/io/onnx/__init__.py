"""ONNX files: `export` writes one from a Cell; Lite's converter reads them with the same messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycelia.engine.base import errors

__all__ = ["export"]


def export(net: Any, *inputs: Any, file_name: str, opset_version: int = 18) -> None:
    """Writes a Cell or a function, as it computes for `inputs` in evaluation mode, to an ONNX file.

    The suffix .onnx is added; folders are made as needed. Inputs have the names of construct's arguments,
    weights those of their Parameters, results are output0, output1, ... Sizes of None are named after their
    input and axis. A model beyond 2 GiB has its weights in a file beside it, NAME.onnx.data.
    opset_version: version of the operators, 17 to 26; what is newer is written as other operators.
    Errors: TypeError, ValueError for wrong arguments; ValueError that lists operations that ONNX cannot
    express, or says which Parameters the network changes.
    """
    from mycelia.io.capture import capture
    from mycelia.io.onnx import save
    from mycelia.io.onnx.sizes import settle_sizes
    from mycelia.io.onnx.types import NEWEST, OLDEST
    from mycelia.io.onnx.write import to_model

    if type(opset_version) is not int:
        raise TypeError(
            f"For 'export', the argument 'opset_version' must be an int, but got {type(opset_version)}."
        )
    if not OLDEST <= opset_version <= NEWEST:
        raise ValueError(
            f"For 'export', 'opset_version' must be from {OLDEST} to {NEWEST}, but got {opset_version}."
        )
    with _evaluating(net):
        captured = capture(net, inputs, settle_sizes)
    if captured["updates"]:
        names = ", ".join(sorted({p.name for p, _ in captured["updates"]}))
        raise errors.value_error(
            "export",
            f"the network changes the Parameters {names}, but an ONNX model has no state",
            hint="give them to construct as inputs, and return what they become",
        )
    model, weights = to_model(
        captured["graph"], captured["input_names"], captured["weights"], captured["output_sizes"],
        name=captured["name"], opset=opset_version,
    )  # fmt: skip
    path = os.path.realpath(file_name).removesuffix(".onnx") + ".onnx"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save.write(model, weights, path)


@contextmanager
def _evaluating(net: Any) -> Iterator[None]:
    """Meanwhile no Cell of `net` is in training mode."""
    cells = [cell for _, cell in net.cells_and_names()] if hasattr(net, "cells_and_names") else []
    training = [cell for cell in cells if cell.training]
    for cell in training:
        cell.training = False
    try:
        yield
    finally:
        for cell in training:
            cell.training = True
