"""The order in which a stage takes micro-batches forwards and backwards."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """Micro-batch `part` goes through the stage, or its gradient goes back through it."""

    part: int
    backward: bool = False


def forward(parts: int) -> list[Step]:
    """Without gradients."""
    return [Step(i) for i in range(parts)]


def gpipe(parts: int) -> list[Step]:
    """All micro-batches forwards, then all backwards, the last one first (Huang et al. 2019, "GPipe"): all
    are held at one time.
    """
    return forward(parts) + [Step(i, True) for i in reversed(range(parts))]


def one_forward_one_backward(number: int, count: int, parts: int) -> list[Step]:
    """As few forwards as fill the stages behind, then one backwards for each (Narayanan et al. 2019,
    "PipeDream"): stage `number` of `count` holds ``count - number`` micro-batches at most.
    """
    ahead = min(count - 1 - number, parts)
    steps = forward(ahead)
    for i in range(parts):
        if ahead + i < parts:
            steps.append(Step(ahead + i))
        steps.append(Step(i, True))
    return steps


def order(scheduler: str, number: int, count: int, parts: int) -> list[Step]:
    """Of a training step; `scheduler`: "gpipe" or "1f1b"."""
    return gpipe(parts) if scheduler == "gpipe" else one_forward_one_backward(number, count, parts)
