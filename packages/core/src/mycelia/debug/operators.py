"""One operator of a run by itself: run once more, with other inputs if wanted, or written as a script that
needs nothing but this library.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycelia.debug.statistics import array_of
from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir import interpret
from mycelia.engine.observing import Operator
from mycelia.engine.ops.define import find
from mycelia.engine.tensors.tensor import Tensor

MOST_BYTES = 64 << 20  # of tensors in a script
_LINE = 100  # characters of data in a line


def run_operator(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Tensor]:
    """What an op makes, those of its inputs that it updates first; the inputs themselves stay as they are.

    `op`: its name ("log"); `inputs`: Tensors, numbers, None for those that are left out, members of lists one
    after another; `attrs`: all of its attributes.
    Errors: ValueError for a name that is none, or an attribute that is missing; what the op raises.
    """
    found = find(op)
    missing = [a.name for a in found.definition.attrs if a.name not in attrs]
    if missing:
        raise errors.value_error(op, f"the attributes {', '.join(missing)} are missing")
    flat = [t._detach() if isinstance(t, Tensor) else t for t in inputs]
    return [t for t in interpret.apply(found, flat, dict(attrs)) if isinstance(t, Tensor)]


def rerun(operator: Operator, inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """What an operator that was observed makes of `inputs`, in the places that its own had."""
    return run_operator(operator.op.definition.name, given(operator, inputs), operator.attrs)


def given(operator: Operator, inputs: Sequence[Tensor | None]) -> list[Any]:
    """All inputs of an operator: these tensors, and its own numbers where they are None."""
    return [operator.numbers.get(i) if t is None else t for i, t in enumerate(inputs)]


def edited(tensor: Tensor, index: tuple[int | slice, ...] | None, value: Any) -> Tensor:
    """A tensor with `value`, a number or nested lists of them, at `index`; None: everywhere. What is not
    finite may be its name ("NaN").

    Errors: ValueError for a value or an index that does not fit; integers and booleans are not rounded.
    """
    array = array_of(tensor).copy()
    try:
        asked = np.asarray(value, np.float64 if array.dtype.kind == "f" else None)
        with np.errstate(invalid="ignore", over="ignore"):
            fitting = asked.astype(array.dtype)
        if array.dtype.kind in "biu" and not np.array_equal(fitting, asked):
            raise ValueError(f"{value} is none of its numbers")
        array[... if index is None else index] = fitting
    except (ValueError, TypeError, IndexError, OverflowError) as cause:
        raise errors.value_error(
            "edit", f"the value does not fit {array.dtype}{list(array.shape)}: {cause}"
        ) from None
    return Tensor(array, tensor.dtype)


def different(made: np.ndarray, recorded: np.ndarray) -> int:
    """How many elements of two arrays of one shape differ; NaN is the same as NaN."""
    alike = made == recorded
    if made.dtype.kind in "fc" and recorded.dtype.kind in "fc":
        alike |= np.isnan(made) & np.isnan(recorded)
    return int(np.count_nonzero(~alike))


def script_of(
    operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], title: str
) -> str:
    """A Python script that runs the operator on these inputs and tells how its outputs differ from `outputs`.

    `title`: what its docstring says. The tensors are inside.
    Errors: ValueError for more than 64 MiB of tensors, or an attribute that has no text, such as a graph.
    """
    name = operator.op.definition.name
    size = sum(t.nbytes for t in [*inputs, *outputs] if t is not None)
    if size > MOST_BYTES:
        raise errors.value_error(name, f"a script takes {MOST_BYTES} bytes of tensors at most, not {size}")
    arrays = {f"input_{i}": array_of(t) for i, t in enumerate(inputs) if t is not None}
    arrays |= {f"output_{i}": array_of(t) for i, t in enumerate(outputs)}
    given = [
        _text(name, operator.numbers.get(i)) if t is None
        else f'ms.Tensor(data["input_{i}"], {_text(name, t.dtype)})'
        for i, t in enumerate(inputs)
    ]  # fmt: skip
    attrs = [f"    {key!r}: {_text(name, value)}," for key, value in operator.attrs.items()]
    places = [f"{file}:{line}" for file, line, _ in operator.stack]
    lines = [
        f'"""{_quoted(title)}', *([""] if places else []), *map(_quoted, places), '"""', "",
        "import base64", "import io", "", "import numpy as np", "",
        "import mycelia as ms", "from mycelia import debug", "",
        "DATA = (", *(f'    "{line}"' for line in _encoded(arrays)), ")", "",
        "data = np.load(io.BytesIO(base64.b64decode(DATA)))",
        "inputs = [", *(f"    {one}," for one in given), "]",
        "attrs = {", *attrs, "}",
        f"outputs = debug.run_operator({name!r}, inputs, attrs)",
        "for slot, made in enumerate(outputs):",
        '    recorded = data[f"output_{slot}"]',
        "    made = made.float().asnumpy() if made.dtype == ms.bfloat16 else made.asnumpy()",
        "    alike = np.array_equal(made, recorded, equal_nan=made.dtype.kind in 'fc')",
        '    how = "as recorded" if alike else "not as recorded"',
        '    print(f"output {slot}: {made.dtype}{list(made.shape)} {how}")',
        "    print(made)", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _encoded(arrays: Mapping[str, np.ndarray]) -> list[str]:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    text = base64.b64encode(file.getvalue()).decode("ascii")
    return [text[i : i + _LINE] for i in range(0, len(text), _LINE)]


def _text(op: str, value: Any) -> str:
    """Python's text for an attribute or a number."""
    if isinstance(value, DType) and getattr(dtypes, value.name, None) is value:
        return f"ms.{value.name}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (tuple, list)):
        inside = "".join(f"{_text(op, one)}, " for one in value)
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    raise errors.value_error(op, f"a value of type {type(value).__name__} has no text for a script")
