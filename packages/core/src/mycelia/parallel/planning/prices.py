"""Memory and time of a step by data parallelism, plain or with states, gradients and weights divided.

Sources: Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training trillion parameter models", for
what each rank keeps and sends; Williams, Waterman and Patterson 2009, "Roofline", for operators elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycelia.engine.base import errors
from mycelia.parallel.planning.network import Network

#: What each rank keeps a share of only, by strategy.
STRATEGIES = {
    "data_parallel": (),
    "zero1": ("states",),
    "zero2": ("states", "gradients"),
    "zero3": ("states", "gradients", "weights"),
}
_NOT_PRICED = ("semi_auto_parallel", "auto_parallel", "tensor_parallel", "pipeline")


@dataclass(frozen=True)
class Operator:
    """Calls of one op at one signature in a step, together: `seconds` that they took, operations, bytes read
    and written, and `limit`, the seconds that the roofline of this machine allows (0: cost not known).
    """

    name: str
    seconds: float
    flops: float
    bytes: float
    limit: float

    def on(self, flops: float, bandwidth: float) -> float:
        """Seconds on a device with so many operations and bytes a second, as near to its limit as here.

        What has no cost takes as long as here.
        """
        if not self.limit:
            return self.seconds
        return max(self.flops / flops, self.bytes / bandwidth) * self.seconds / self.limit


@dataclass(frozen=True)
class Step:
    """A step of a training on one rank: `rows` of the batch, bytes of trained `weights`, of their
    `gradients`, of `states` of the optimizer and of `activations` with all else that is there at the peak.
    """

    rows: int
    weights: int
    gradients: int
    states: int
    activations: int
    operators: Sequence[Operator]

    @property
    def seconds(self) -> float:
        """In operators."""
        return sum(one.seconds for one in self.operators)

    @property
    def flops(self) -> float:
        """Floating-point operations."""
        return sum(one.flops for one in self.operators)

    def on(self, flops: float, bandwidth: float) -> float:
        """Seconds in operators on another device, see `Operator.on`."""
        return sum(one.on(flops, bandwidth) for one in self.operators)


@dataclass(frozen=True)
class Plan:
    """A step by `strategy` on `ranks` ranks: bytes a rank by kind, seconds of operators, of all communication
    and of the part of it that nothing hides; `rows` of all ranks together.
    """

    strategy: str
    ranks: int
    memory: dict[str, int]
    compute: float
    communication: float
    exposed: float
    rows: int

    @property
    def bytes(self) -> int:
        """That a rank needs at the peak."""
        return sum(self.memory.values())

    @property
    def seconds(self) -> float:
        """Of a step."""
        return self.compute + self.exposed

    @property
    def efficiency(self) -> float:
        """What is left of the ranks' speed: 1 if there was no communication."""
        return self.compute / self.seconds if self.seconds else 1.0

    def as_dict(self) -> dict:
        """For JSON; seconds and bytes."""
        return {
            "strategy": self.strategy, "ranks": self.ranks, "memory": self.memory, "bytes": self.bytes,
            "compute": self.compute, "communication": self.communication, "exposed": self.exposed,
            "seconds": self.seconds, "efficiency": self.efficiency, "rows_per_s": self.rows / self.seconds
            if self.seconds else 0.0,
        }  # fmt: skip


def price(
    step: Step, network: Network, ranks: int, strategy: str = "data_parallel", compute: float | None = None,
    overlap: bool = False, bucket: int = 25 << 20,
) -> Plan:  # fmt: skip
    """The price of `step`, made by each of `ranks` ranks on a batch of its own.

    `compute`: seconds of its operators, by default as measured. `bucket`: bytes of gradients that are sent at
    a time. `overlap`: whether they are sent while the backward pass, two thirds of the operators' time, goes
    on; the last is ready at its end. Weights of zero3 are gathered for the forward and once more for the
    backward pass, beside the operators if `overlap`.
    Errors: ValueError for an unknown strategy or too many ranks, NotImplementedError for one without a price.
    """
    if strategy in _NOT_PRICED:
        raise NotImplementedError(f"plan: {strategy} has no price yet; known are {', '.join(STRATEGIES)}")
    if strategy not in STRATEGIES:
        raise errors.one_of(strategy, tuple(STRATEGIES), subject="plan", what="strategy")
    if not isinstance(bucket, int) or isinstance(bucket, bool) or bucket < 1:
        raise errors.value_error("plan", f"bucket must be a positive number of bytes, but got {bucket!r}")
    compute = step.seconds if compute is None else compute
    shared = STRATEGIES[strategy]
    memory = {
        name: -(-size // ranks) if name in shared and ranks > 1 else size
        for name, size in (
            ("weights", step.weights), ("gradients", step.gradients), ("states", step.states),
            ("activations", step.activations),
        )
    }  # fmt: skip
    if ranks == 1:
        network.shares(ranks)
        return Plan(strategy, ranks, memory, compute, 0.0, 0.0, step.rows)
    count = max(1, -(-step.gradients // bucket))
    size = step.gradients / count
    memory["buckets"] = min(bucket, step.gradients)
    if not shared:
        each, after = network.all_reduce(ranks, size), 0.0
    else:
        # Parts of the sum to each, and the updated weights to all; zero3 leaves them where they are.
        each = network.reduce_scatter(ranks, size)
        gathered = network.reduce_scatter(ranks, step.weights)
        after = 0.0 if "weights" in shared else gathered
    sent = count * each
    exposed = sent + after
    forward, backward = compute / 3, 2 * compute / 3
    if overlap:  # all buckets but the last may hide behind the backward pass
        exposed = each + max(0.0, sent - each - backward * (count - 1) / count) + after
    communication = sent + after
    if "weights" in shared:
        communication += 2 * gathered
        if overlap:
            rest = max(0.0, backward - (sent - each))
            exposed += max(0.0, gathered - forward) + max(0.0, gathered - rest)
        else:
            exposed += 2 * gathered
    return Plan(strategy, ranks, memory, compute, communication, exposed, step.rows * ranks)
