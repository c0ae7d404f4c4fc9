"""What a dump says of operators beside their tensors, so that one can run again: its op, its attributes, and
where its inputs are numbers. One file a graph, ``graphs/mycelia_operators_graph_N.json``; not MindSpore's.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mycelia.debug.dump import files
from mycelia.engine.base import dtypes, errors
from mycelia.engine.base.dtypes import DType
from mycelia.engine.observing import Operator

_VERSION = 1


@dataclass(frozen=True, slots=True)
class RecordedOperator:
    """An operator of a dump. `op`: the op's name; `missing`: attributes that have no text, such as a graph;
    `numbers`: inputs that are Python numbers, by position; `inputs`: dtypes, None for what is no tensor;
    `constants`: positions of inputs that the code has as they are, constants of a graph, and of an eager
    call single elements that no call made; `empty`: dtypes and shapes of inputs (``"input:0"``) and outputs
    (``"0"``) without elements, of which there are no files; `parts`: full names of what a fused one was made
    of, in order, by the pass `made_by`.
    """

    op: str
    attrs: dict[str, Any]
    missing: tuple[str, ...]
    numbers: dict[int, Any]
    inputs: tuple[DType | None, ...]
    constants: tuple[int, ...] = ()
    empty: dict[str, tuple[DType, tuple[int, ...]]] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    made_by: str = ""


def is_infinite(attrs: Mapping[str, Any], numbers: Mapping[int, Any]) -> bool:
    """Whether an attribute of an operator, or a Python number that it reads, is infinite."""
    return any(map(_is_infinite, (*attrs.values(), *numbers.values())))


def _is_infinite(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_is_infinite, value))
    return isinstance(value, float) and math.isinf(value)


class Ends(NamedTuple):
    """(dtype, shape) of what an operator reads, None for what is no tensor, and makes; `constants`: positions
    of inputs that are.
    """

    inputs: Sequence[tuple[DType, Sequence[Any]] | None]
    outputs: Sequence[tuple[DType, Sequence[Any]]]
    constants: Sequence[int]

    def empty(self) -> dict[str, list[Any]]:
        """Slot -> name of the dtype and shape of those without elements."""
        ends = {f"input:{i}": end for i, end in enumerate(self.inputs) if end is not None}
        ends |= {f"{i}": end for i, end in enumerate(self.outputs)}
        return {
            slot: [dtype.name, list(shape)]
            for slot, (dtype, shape) in ends.items()
            if 0 in shape and all(isinstance(size, int) for size in shape)
        }


def write_operators(root: str, number: int, operators: Iterable[tuple[Operator, Ends]]) -> None:
    """The file of graph `number`: of each operator what it is, and of its inputs and outputs what files of
    tensors do not tell.

    Errors: OSError.
    """
    found: dict[str, Any] = {}
    for operator, ends in operators:
        attrs, missing = {}, []
        for name, value in operator.attrs.items():
            try:
                attrs[name] = to_json(value)
            except TypeError:
                missing.append(name)
        found[operator.name] = {
            "op": operator.op.definition.name, "attrs": attrs, "missing": missing,
            "numbers": {str(i): to_json(v) for i, v in operator.numbers.items()},
            "inputs": [None if end is None else end[0].name for end in ends.inputs],
            "constants": list(ends.constants), "empty": ends.empty(),
        }  # fmt: skip
        if operator.parts:
            found[operator.name] |= {
                "parts": [part.name for part in operator.parts], "made_by": operator.made_by,
            }  # fmt: skip
    text = json.dumps({"version": _VERSION, "operators": found})
    files.write(os.path.join(root, "graphs", f"mycelia_operators_graph_{number}.json"), [text])


def read_operators(rank_folder: Path, number: int) -> dict[str, RecordedOperator]:
    """Full name -> operator; nothing if the dump does not say.

    Errors: ValueError for a file that is damaged, or of another version.
    """
    path = rank_folder / "graphs" / f"mycelia_operators_graph_{number}.json"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as cause:
        raise errors.value_error("dump", f"{path} cannot be read: {cause}") from None
    try:
        told = json.loads(text)
        if told["version"] != _VERSION:
            raise ValueError(f"it is of version {told['version']!r}, not {_VERSION}")
        return {str(name): _read(one) for name, one in told["operators"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as cause:
        raise errors.value_error("dump", f"{path} cannot be read: {cause!r}") from None


def is_sampled(rank_folder: Path) -> bool:
    """Whether a dump's configuration says that its tensors are samples; not if there is none to read."""
    try:
        told = json.loads((rank_folder / ".dump_metadata" / "data_dump.json").read_text(encoding="utf-8"))
        return told["e2e_dump_settings"]["sample_mode"] == 1
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False


def _read(told: dict[str, Any]) -> RecordedOperator:
    return RecordedOperator(
        str(told["op"]), {str(name): from_json(value) for name, value in told["attrs"].items()},
        tuple(map(str, told["missing"])), {int(i): from_json(v) for i, v in told["numbers"].items()},
        tuple(None if name is None else _dtype(name) for name in told["inputs"]),
        tuple(map(int, told.get("constants", ()))),
        {str(k): (_dtype(n), tuple(map(int, shape))) for k, (n, shape) in told.get("empty", {}).items()},
        tuple(map(str, told.get("parts", ()))), str(told.get("made_by", "")),
    )  # fmt: skip


def to_json(value: Any) -> Any:
    """A value as JSON has it; what JSON has not is an object of one member.  Errors: TypeError."""
    if isinstance(value, DType) and getattr(dtypes, value.name, None) is value:
        return {"dtype": value.name}
    if isinstance(value, tuple):
        return {"tuple": [to_json(one) for one in value]}
    if isinstance(value, list):
        return [to_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [to_json(value.real), to_json(value.imag)]}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"a value of type {type(value).__name__} has no text")


def from_json(told: Any) -> Any:
    """What `to_json` told.  Errors: ValueError, TypeError, KeyError for what it never does."""
    if isinstance(told, list):
        return [from_json(one) for one in told]
    if not isinstance(told, dict):
        return told
    ((kind, inside),) = told.items()
    if kind == "tuple":
        return tuple(from_json(one) for one in inside)
    if kind == "dtype":
        return _dtype(inside)
    if kind == "float":
        return float(inside)
    if kind == "complex":
        real, imaginary = map(from_json, inside)
        return complex(real, imaginary)
    raise ValueError(f"{kind!r} is no kind of value")


def _dtype(name: str) -> DType:
    found = getattr(dtypes, name, None)
    if not isinstance(found, DType):
        raise ValueError(f"{name!r} is no dtype")
    return found
