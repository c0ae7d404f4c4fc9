"""ONNX files: `export` writes one from a Cell; Lite's converter reads them with the same messages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mycelia.engine.base import errors

__all__ = ["export"]


def export(
    net: Any,
    *inputs: Any,
    file_name: str,
    opset_version: int = 18,
    dynamic_axes: Mapping[str, Mapping[int, str]] | None = None,
) -> None:
    """Writes a Cell or a function, as it computes for `inputs` in evaluation mode, to an ONNX file.

    The suffix .onnx is added; folders are made as needed. Inputs have the names of construct's arguments,
    weights those of their Parameters, results are output0, output1, ... Sizes of None are named after their
    input and axis. A model beyond 2 GiB has its weights in a file beside it, NAME.onnx.data.
    opset_version: version of the operators, 17 to 26; what is newer is written as other operators.
    dynamic_axes: input -> axis -> name of its open size, which is None in the input's shape. Sizes of one
    name are the same size.
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
    sizes = _named_sizes(dynamic_axes)
    with _evaluating(net):
        captured = capture(net, inputs, settle_sizes, sizes)
    _check_sizes(captured, sizes)
    if captured["updates"]:
        names = ", ".join(sorted({p.name for p, _ in captured["updates"]}))
        raise errors.value_error(
            "export",
            f"the network changes the Parameters {names}, but an ONNX model has no state",
            hint="give them to construct as inputs, and return what they become",
        )
    model, weights = to_model(
        captured["graph"], captured["input_names"], captured["weights"], captured["output_sizes"],
        name=captured["name"], opset=opset_version, sizes=sizes,
    )  # fmt: skip
    path = os.path.realpath(file_name).removesuffix(".onnx") + ".onnx"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    save.write(model, weights, path)


def _named_sizes(given: Any) -> dict[tuple[str, int], str]:
    """(input, axis) -> name. Errors: TypeError for other mappings."""
    found = {}
    for name, axes in (given or {}).items() if isinstance(given, (Mapping, type(None))) else [("", None)]:
        if not isinstance(axes, Mapping) or not all(
            type(axis) is int and isinstance(size, str) for axis, size in axes.items()
        ):
            raise TypeError(
                "For 'export', 'dynamic_axes' must be a dict from inputs to dicts from axes to names, "
                f"but got {given!r}."
            )
        found.update({(name, axis): size for axis, size in axes.items()})
    return found


def _check_sizes(captured: dict[str, Any], sizes: dict[tuple[str, int], str]) -> None:
    inputs = [v for v in captured["graph"].parameters if v not in captured["weights"]]
    types = {name: value.type for name, value in zip(captured["input_names"], inputs, strict=True)}
    for (name, axis), size in sizes.items():
        if name not in types:
            raise ValueError(
                f"For 'export', 'dynamic_axes' names '{name}', but the inputs are {list(types)}."
            )
        shape = types[name].shape
        if not 0 <= axis < len(shape) or shape[axis] != -1:
            raise ValueError(
                f"For 'export', 'dynamic_axes' calls axis {axis} of '{name}' '{size}', but its shape is "
                f"{[None if n == -1 else n for n in shape]}: give None for the size there."
            )


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
