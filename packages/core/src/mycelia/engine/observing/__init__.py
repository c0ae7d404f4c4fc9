"""Watching what runs: every operator's inputs and outputs, in compiled functions and in eager calls.

An `Observer` is told of each `Run` of a compiled function, an iteration, before it begins. If it asks for the
values, the run goes through the graph operator by operator, each as the code has it, whatever the compiler
would join: `seen` gets an `Operator`, with type, full name, origin in the user's code, and its tensors. Eager
calls of a thread come to those who `watch` it, in runs of their own. While nobody watches, a compiled call
reads one list, and an eager call does nothing at all.
"""

from mycelia.engine.observing.eager import watch_calls
from mycelia.engine.observing.observers import (
    NOTHING,
    RESULTS,
    VALUES,
    Observer,
    Operator,
    Run,
    iteration,
    observers,
    set_iteration,
    unwatch,
    watch,
)

__all__ = [
    "NOTHING", "RESULTS", "VALUES", "Observer", "Operator", "Run", "iteration", "observers",
    "set_iteration", "unwatch", "watch", "watch_calls",
]  # fmt: skip
