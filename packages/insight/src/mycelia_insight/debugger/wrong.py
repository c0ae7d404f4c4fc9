"""What sessions of the debugger refuse."""

from __future__ import annotations


class Wrong(ValueError):
    """`code`: MindInsight's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def told(cause: BaseException) -> str:
    """What an error says. Core's end with the line of the program that ran into it: the service's own."""
    subject, message = getattr(cause, "subject", ""), getattr(cause, "message", "")
    return f"{subject}: {message}" if subject and message else str(cause)
