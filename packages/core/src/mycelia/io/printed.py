"""What `ops.Print` wrote to the file of the setting `print_file_path`."""

from __future__ import annotations

from pathlib import Path

from mycelia.engine.base import errors, wire
from mycelia.engine.ops.control_flow import print_file
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.ckpt import DTYPES
from mycelia.io.raw import from_bytes, to_tensor


def parse_print(print_file_name: str) -> list[Tensor | str]:
    """The texts and Tensors of a print file, in the order in which they were printed.

    Errors: TypeError unless a path, ValueError for a file that is missing, empty or damaged.
    """
    try:
        path = Path(print_file_name)
    except TypeError:
        got = type(print_file_name).__name__
        raise errors.type_error("parse_print", f"print_file_name must be a path, but got {got}") from None
    try:
        data = path.read_bytes()
    except OSError as cause:
        raise errors.value_error(
            "parse_print", f"the print file {str(path)!r} cannot be read: {cause.strerror}"
        ) from cause
    if not data:
        raise errors.value_error("parse_print", f"the print file {str(path)!r} is empty")
    try:
        records = [record for number, record in wire.fields(memoryview(data)) if number == print_file.VALUE]
        return [_value(record) for record in records]
    except (ValueError, KeyError, TypeError) as cause:  # TypeError: a field of another kind
        text = f"the print file {str(path)!r} is damaged: {cause}"
        raise errors.value_error("parse_print", text) from cause


def _value(record: memoryview) -> Tensor | str:
    for number, content in wire.fields(record):
        if number == print_file.TEXT:
            return _text(content)
        if number == print_file.TENSOR:
            return _tensor(content)
    raise ValueError("a record holds neither a text nor a tensor")


def _text(content: memoryview | int) -> str:
    if isinstance(content, int):  # of which bytes() makes as many zeros
        raise ValueError("a text is stored as a number")
    return bytes(content).decode()


def _tensor(record: memoryview) -> Tensor:
    shape: list[int] = []
    kind, data = "", memoryview(b"")
    for number, content in wire.fields(record):
        if number == print_file.DIMS:
            shape.append(wire.signed(content))
        elif number == print_file.TYPE:
            kind = _text(content)
        elif number == print_file.CONTENT:
            data = content
    return to_tensor(from_bytes(DTYPES[kind], tuple(shape), data))
