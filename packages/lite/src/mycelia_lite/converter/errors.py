"""Codes of the converter, those of MindSpore Lite, and the error that carries one."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """How a conversion ended: the number in ``CONVERT RESULT FAILED:<code>``."""

    SUCCESS = 0
    ERROR = -1
    PARAM_INVALID = -3
    NOT_SUPPORT = -7
    GRAPH_FILE_ERROR = -200
    NOT_FIND_OP = -300
    INVALID_OP_ATTR = -302
    INPUT_PARAM_INVALID = -600


class ConversionError(RuntimeError):
    """A model that cannot be converted: `code` and one readable reason."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code

    def __str__(self) -> str:
        return f"{self.args[0]} (code {int(self.code)})"


class Misfit(ConversionError):
    """A node that no engine could run: its inputs do not fit together, or an axis is not there."""


class NotAvailable(ConversionError, NotImplementedError):
    """Something that MindSpore Lite has and this converter has not."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.NOT_SUPPORT, reason)
