"""Where the summary operators hand their values: every sink in `active`, such as an open SummaryRecord."""

from __future__ import annotations

from typing import Any, Protocol


class Sink(Protocol):
    """What takes values: `kind` is "scalar", "image", "tensor" or "histogram"."""

    def take(self, kind: str, name: str, tensor: Any) -> None: ...


active: list[Sink] = []


def record(kind: str, name: str, tensor: Any) -> None:
    """Hand a value (Tensor or NumPy array) to all active sinks."""
    for sink in tuple(active):
        sink.take(kind, name, tensor)
