"""A step of a script's training, measured for `mycelia plan`."""

from __future__ import annotations

from collections.abc import Callable

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.parallel.planning import Operator, Step
from mycelia.profiler import Profiler
from mycelia.train.checks.facts import Facts
from mycelia.train.checks.watching import collecting

WARM = 2  # steps that capture, compile and make the optimizer's states


class _Enough(SystemExit):
    """Ends a script: what was asked for is known."""


class _Measured:
    """Measures the steps of `facts` behind the first `WARM`, and ends the script after `steps` of them."""

    def __init__(self, facts: Facts, steps: int) -> None:
        self.facts, self.steps = facts, steps
        self.profiler = Profiler(start_profile=False)
        self.running, self.peak = False, 0

    def __call__(self) -> None:
        """After a step."""
        done = len(self.facts.losses)
        if done == WARM:
            _C.reset_memory_peaks(True, True)
            self.profiler.start()
            self.running = True
        elif done == WARM + self.steps:
            self.stop()
            raise _Enough(0)

    def stop(self) -> None:
        if self.running:
            self.running = False
            self.peak = _C.memory_statistics()["peak_bytes"]
            self.profiler.stop()


def measure(run: Callable[[], None], steps: int = 5) -> Step | None:
    """The mean of `steps` steps, or as many as there are, of the first training that `run` makes; then `run`
    is ended.

    None if it made none behind the first `WARM`. Errors: ValueError for `steps` below 1; what `run` raises.
    """
    if steps < 1:
        raise errors.value_error("plan", f"steps must be positive, but got {steps}")
    with collecting() as facts:
        measured = _Measured(facts, steps)
        facts.listeners.append(measured)
        try:
            run()
        except _Enough:
            pass
        finally:
            measured.stop()
    found = len(facts.losses) - WARM
    if found < 1:
        return None
    trained = facts.params.optimizer.parameters
    own = {id(p) for p in trained}
    states = [p for p in facts.params.optimizer.get_parameters() if id(p) not in own]
    weights, kept = (sum(p.nbytes for p in some) for some in (trained, states))
    operators = tuple(
        Operator(row.name, row.seconds / found, row.flops / found, row.bytes / found, row.limit / found)
        for row in measured.profiler.rows(by_signature=True)
    )
    rest = max(0, measured.peak - 2 * weights - kept)
    return Step(facts.batch_size, weights, weights, kept, rest, operators)
