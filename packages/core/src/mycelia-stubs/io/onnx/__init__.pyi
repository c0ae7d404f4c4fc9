# Written by tools/gen_stubs.py.
from typing import Any as Any

__all__ = [
    "export",
]


def export(net: Any, *inputs: Any, file_name: str, opset_version: int = 18) -> None:
    """Writes a Cell or a function, as it computes for `inputs` in evaluation mode, to an ONNX file."""
