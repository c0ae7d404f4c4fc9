"""What sessions of the debugger refuse."""

from __future__ import annotations


class Wrong(ValueError):
    """`code`: MindInsight's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
