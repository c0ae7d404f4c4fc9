"""Parts of tensors as text, such as ``[0, :, 2:5]``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mycelia.engine.base import errors


def indices(text: str, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """``[0, :, 2:5]`` as Python's indices; those that are left out are ``:``.  Errors: ValueError."""
    parts = [one.strip() for one in text.strip().removeprefix("[").removesuffix("]").split(",")]
    if parts == [""]:
        parts = []
    if len(parts) > len(shape):
        raise errors.value_error("slice", f"{text!r} has {len(parts)} indices, the shape is {list(shape)}")
    found: list[int | slice] = []
    for one, size in zip(parts, shape, strict=False):
        if not re.fullmatch(r"-?\d{1,18}|(-?\d{1,18})?:(-?\d{1,18})?(:-?\d{1,18})?", one):
            raise errors.value_error("slice", f"an index must be 'i', 'a:b' or ':', but got {one!r}")
        if ":" in one:
            ends = [int(end) if end else None for end in one.split(":")]
            if len(ends) == 3 and ends[2] == 0:
                raise errors.value_error("slice", f"the step of {one!r} must not be 0")
            found.append(slice(*ends))
        elif -size <= int(one) < size:
            found.append(int(one))
        else:
            raise errors.value_error("slice", f"index {one} is outside of a dimension of {size}")
    return tuple(found)
