# Written by tools/gen_stubs.py.
from collections.abc import Mapping as Mapping
from typing import Any as Any

__all__ = [
    "export",
]


def export(net: Any, *inputs: Any, file_name: str, opset_version: int = 18, dynamic_axes: Mapping[str, Mapping[int, str]] | None = None) -> None:
    """Writes a Cell or a function, as it computes for `inputs` in evaluation mode, to an ONNX file."""
