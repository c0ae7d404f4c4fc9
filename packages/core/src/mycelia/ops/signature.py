"""How the inputs of a primitive are read and written: `__mindspore_signature__` of primitives of the user's.

They are recorded; reading, writing and casts follow from what an implementation does.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class sig_rw(Enum):
    """Whether an input is read, written, or a Parameter that is referred to."""

    RW_READ = 0
    RW_WRITE = 1
    RW_REF = 2
    RW_EMPTY_DEFAULT_VALUE = 3


class sig_kind(Enum):
    """How an input may be given in a call."""

    KIND_POSITIONAL_KEYWORD = 0
    KIND_VAR_POSITIONAL = 1
    KIND_KEYWORD_ONLY = 2
    KIND_VAR_KEYWARD = 3
    KIND_EMPTY_DEFAULT_VALUE = 4


class sig_dtype(Enum):
    """Inputs with the same letter are brought to one dtype."""

    T = 0
    T1 = 1
    T2 = 2
    T3 = 3
    T4 = 4
    T5 = 5
    T6 = 6
    T7 = 7
    T8 = 8
    T9 = 9
    T_EMPTY_DEFAULT_VALUE = 10


class Signature(NamedTuple):
    """The record of one input."""

    name: str
    rw: sig_rw
    kind: sig_kind
    default_value: Any
    dtype: sig_dtype


def make_sig(
    name: str = "var", rw: sig_rw = sig_rw.RW_READ, kind: sig_kind = sig_kind.KIND_POSITIONAL_KEYWORD,
    default: Any = sig_kind.KIND_EMPTY_DEFAULT_VALUE, dtype: sig_dtype = sig_dtype.T_EMPTY_DEFAULT_VALUE,
) -> Signature:  # fmt: skip
    """The record of one input."""
    return Signature(name, rw, kind, default, dtype)


__all__ = ["Signature", "make_sig", "sig_dtype", "sig_kind", "sig_rw"]
