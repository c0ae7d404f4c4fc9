"""How the device computes: the chip, overflow, what the cube takes and how it adds; read by every task."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

INFNAN, SATURATION = "INFNAN_MODE", "SATURATION_MODE"

#: Allowed values by field; a field that is not listed takes a bool.
CHOICES = {
    "overflow_mode": (INFNAN, SATURATION),
    "accumulate": ("fp32", "fp16"),
    "precision_mode": ("allow_fp32_to_fp16", "allow_fp32_to_bf16", "must_keep_origin_dtype"),
}

#: Environment variable of each field.
VARIABLES = {
    "chip": "MYCELIA_ASCEND_CHIP",
    "overflow_mode": "MS_ASCEND_CHECK_OVERFLOW_MODE",
    "accumulate": "MYCELIA_ASCEND_ACCUMULATE",
    "precision_mode": "MYCELIA_ASCEND_PRECISION_MODE",
    "flush_denormals": "MYCELIA_ASCEND_FLUSH_DENORMALS",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of the device.

    chip: a name of `chips`, which gives buffers and rates of the cycle model, and the memory's size.
    overflow_mode: `INFNAN_MODE`, results are as IEEE 754 says; `SATURATION_MODE`, they are clamped.
    accumulate: the dtype of the cube's sums of 16-bit floats.
    precision_mode: what the cube makes of float32 operands: float16, bfloat16, or float32 as it is.
    flush_denormals: results and operands below the smallest normal number of their dtype become zero.
    """

    chip: str = "910"
    overflow_mode: str = INFNAN
    accumulate: str = "fp32"
    precision_mode: str = "allow_fp32_to_fp16"
    flush_denormals: bool = False

    def changed(self, **changes: Any) -> Options:
        """These options with other values. Errors: TypeError for an unknown name, ValueError for a value."""
        for name, value in changes.items():
            _check(name, value)
        return replace(self, **changes)


def _check(name: str, value: Any) -> None:
    if name not in VARIABLES:
        raise TypeError(f"the simulator has no option '{name}': it has {sorted(VARIABLES)}")
    if name == "chip":
        from mycelia_backend_ascend_sim import chip

        chip.load(value)
    elif name in CHOICES:
        if value not in CHOICES[name]:
            raise ValueError(f"option '{name}' must be one of {list(CHOICES[name])}, but got {value!r}")
    elif not isinstance(value, bool):
        raise ValueError(f"option '{name}' must be True or False, but got {value!r}")


def from_environment(environment: Mapping[str, str]) -> Options:
    """Options as variables ask for them. Errors: ValueError that names the variable."""
    found = {}
    for field in fields(Options):
        variable = VARIABLES[field.name]
        text = environment.get(variable, "")
        if not text:
            continue
        value: Any = text
        if field.name not in CHOICES and field.name != "chip":
            if text not in ("0", "1"):
                raise ValueError(f"the variable {variable} must be 0 or 1, but it is {text!r}")
            value = text == "1"
        try:
            _check(field.name, value)
        except ValueError as error:
            raise ValueError(f"the variable {variable}: {error}") from None
        found[field.name] = value
    return Options(**found)


_present: Options | None = None


def present() -> Options:
    """The options in force; the environment is read at the first call."""
    global _present
    if _present is None:
        _present = from_environment(os.environ)
    return _present


def configure(**changes: Any) -> None:
    """Change options from now on: ``configure(overflow_mode="SATURATION_MODE")``.

    Errors: TypeError for an unknown name, ValueError for a value that it does not take.
    """
    global _present
    _present = present().changed(**changes)


@contextlib.contextmanager
def context(**changes: Any) -> Iterator[Options]:
    """Options changed within a block. Errors: as `configure`."""
    global _present
    before = present()
    _present = before.changed(**changes)
    try:
        yield _present
    finally:
        _present = before
