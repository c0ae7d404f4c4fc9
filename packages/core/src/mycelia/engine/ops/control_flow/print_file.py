"""The file of the setting `print_file_path`: what `ops.Print` prints, as records that `parse_print` reads.

A file is one message of MindSpore's print.proto, `Print { repeated Value value = 1 }`, to which each call
appends. `Value` is a text (`desc = 1`) or a tensor (`tensor = 2`): `dims = 1`, `tensor_type = 2`, the bytes
of its numbers (`tensor_content = 3`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mycelia.engine.base.wire import field

VALUE, TEXT, TENSOR = 1, 1, 2
DIMS, TYPE, CONTENT = 1, 2, 3


def append(path: str, values: Iterable[Any]) -> None:
    """Adds one call's values, Tensors and texts, in one piece.  Errors: OSError."""
    data = b"".join(field(VALUE, _record(value)) for value in values)
    with open(path, "ab", buffering=0) as file:
        before = file.tell()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError:
            file.truncate(before)  # a full disk leaves no half record
            raise


def _record(value: Any) -> bytes:
    if not hasattr(value, "asnumpy"):
        return field(TEXT, str(value).encode())
    dims = b"".join(field(DIMS, n) for n in value.shape)
    # MindSpore's names of dtypes: Float32, BFloat16, Bool
    return field(TENSOR, dims + field(TYPE, str(value.dtype).encode()) + field(CONTENT, value.get_bytes()))
