"""Functions whose graphs are divided among the ranks that train together (`semi_auto_parallel`).

Arguments are this rank's shares of a batch, as the setting `dataset_strategy` says, and so are results whose
first axis is the batch's; other results are whole. Parameters keep this rank's part from the first
compilation on that divides them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import errors, parallel_settings
from mycelia.engine.communication import mode, world
from mycelia.engine.communication.share import GridShare
from mycelia.engine.compile.compiled import Compiled
from mycelia.engine.ir.graph import Graph, Value
from mycelia.engine.ir.types import TensorType
from mycelia.engine.sharding import annotate, strategies
from mycelia.engine.sharding.mesh import Placed, whole
from mycelia.engine.sharding.partition import Known
from mycelia.engine.sharding.propagation import partition
from mycelia.engine.sharding.strategies import Written
from mycelia.engine.tensors.tensor import Parameter, Tensor

_OWNER = "semi_auto_parallel"


def key() -> Any:
    """What graphs depend on besides their arguments; None where none is divided."""
    here = world.current()
    if here is None or mode.dividing(_OWNER) == 1:
        return None
    get = parallel_settings.get_auto_parallel_context
    strategy = get("dataset_strategy")
    told = strategy if isinstance(strategy, str) else tuple(
        tuple(sorted(one.to_dict().items(),
        key=str)) if strategies.is_layout(one) else one for one in strategy
    )  # fmt: skip
    states = mode.dividing_states_of_graphs(_OWNER)
    return str(told), get("full_batch"), here.layouts, mode.spreads_layouts(), states


class Arguments:
    """How the tensors among the arguments lie: `layouts`, one for each."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.size = mode.dividing(_OWNER)
        self.rank = (world.place() or (0, 1))[0]
        self.layouts = [self._layout(t, i, len(tensors)) for i, t in enumerate(tensors)]
        self.types = [self._type(t, written) for t, written in zip(tensors, self.layouts)]

    def _layout(self, tensor: Tensor, index: int, count: int) -> Written:
        get = parallel_settings.get_auto_parallel_context
        strategy, rank = get("dataset_strategy"), tensor.ndim
        if strategy == "full_batch" or (strategy == "data_parallel" and get("full_batch")):
            return strategies.of_counts(_OWNER, (1,) * rank, self.size)
        if strategy == "data_parallel":
            return strategies.of_counts(_OWNER, (self.size, *(1,) * (rank - 1)) if rank else (), self.size)
        if len(strategy) != count:
            raise errors.value_error(
                _OWNER,
                f"dataset_strategy is for {len(strategy)} tensors, but the function is called with {count}",
            )
        one = strategy[index]
        made = strategies.of_layout(_OWNER, one,
        self.size) if strategies.is_layout(one) else strategies.of_counts(
            _OWNER, tuple(one), self.size
        )  # fmt: skip
        if len(made.axes) != rank:
            raise errors.value_error(
                _OWNER, f"dataset_strategy {made.said} of argument {index} is for {len(made.axes)} axes, "
                f"but its shape "
                f"is {list(tensor.shape)}",
            )  # fmt: skip
        return made

    def _type(self, tensor: Tensor, written: Written) -> TensorType:
        """The type of the whole."""
        sizes = zip(tensor.shape, written.axes)
        return TensorType(tensor.dtype, tuple(n * _parts(written, axes) for n, axes in sizes))


def _parts(written: Written, axes: Sequence[int]) -> int:
    return int(np.prod([written.matrix[a] for a in axes], dtype=np.int64))


def divide(
    graph: Graph,
    arguments: Arguments,
    inputs: list[tuple[Tensor, Value]],
    targets: Sequence[Tensor],
    count: int,
) -> tuple[Graph, list[Any]]:
    """This rank's graph, whose first results are the function's; Parameters that it divides are cut.
    `inputs` gets those of `targets` that are overwritten without being read. The second result is for
    `Divided`.
    """
    _require_no_tape([tensor for tensor, _ in inputs])
    known = {id(tensor) for tensor, _ in inputs}
    for result, target in zip(graph.outputs[count:], targets):
        if id(target) not in known:
            inputs.append((target, graph.add_parameter(result.type, getattr(target, "name", ""))))
    given: dict[Value, Any] = {
        value: (written.matrix, written.axes) for value, written in zip(graph.parameters, arguments.layouts)
    }
    values = {id(tensor): value for tensor, value in inputs}
    updates = [(result, values[id(target)]) for result, target in zip(graph.outputs[count:], targets)]
    known = _known(graph, inputs, arguments.size, given, updates)
    made = partition(graph, arguments.size, arguments.rank, known, mode.spreads_layouts())
    batch = {
        value.type.shape[0]: made.placed[value].dims[0]
        for value in reversed(graph.parameters[: len(arguments.layouts)])
        if value.type.rank and made.placed[value].dims[0]
    }
    results = [_result(value, batch) for value in graph.outputs[:count]]
    divided = made.rewritten(results)
    sums = [_checksum(tensor) for tensor, _ in inputs if isinstance(tensor, Parameter)]
    layouts = {}
    for tensor, value in inputs:
        if not isinstance(tensor, Parameter):
            continue
        layouts[tensor.name] = made.share(value)
        if not made.lies(value).is_whole and tensor.share is None:
            if value in made.stored:
                tensor.in_use = made.share_of(made.placed[value], value)
            _cut(tensor, layouts[tensor.name])
    for told in mode.divisions:
        told(made.operators(), layouts)
    return divided, sums


def _known(
    graph: Graph,
    inputs: list[tuple[Tensor, Value]],
    size: int,
    given: dict[Value, Any],
    updates: list[tuple[Value, Value]],
) -> Known:
    """What Parameters and states say of themselves. `given`: the layouts of arguments."""
    known, dividing = Known(given, updates), mode.dividing_states_of_graphs(_OWNER)
    annotated = {n.inputs[0] for n in graph.nodes if n.op.definition.name == "with_layout"}
    free, states, weights = [], [], []
    for tensor, value in inputs:
        if not isinstance(tensor, Parameter):
            continue
        share = tensor.share
        plan = None if share is not None else annotate.planned(tensor, size)
        if tensor.in_use is not None:
            given[value] = tensor.in_use.matrix, tensor.in_use.axes
            known.stored[value] = share.matrix, share.axes
        elif isinstance(share, GridShare):
            given[value] = share.matrix, share.axes
        elif plan is not None:
            given[value] = plan.matrix, plan.axes
        is_trained = tensor.requires_grad and not tensor._is_optimizer_state
        if is_trained and value not in given and value not in annotated:
            free.append(value)
        if dividing is None or share is not None or not tensor.parallel_optimizer:
            continue
        if tensor.size * tensor.dtype.itemsize < dividing.least_bytes:
            continue
        if tensor._is_optimizer_state:
            states.append(value)
        elif is_trained and dividing.level == 3:
            weights.append(value)
    if mode.spreads_layouts():
        known.free = free
    else:
        given.update((value, ((size,), ((),) * value.type.rank)) for value in free)
    known.states, known.weights = states, weights
    return known


def _require_no_tape(tensors: Sequence[Tensor]) -> None:
    """RuntimeError if a gradient is taken by one of these: a tape follows this rank's parts alone."""
    if _C.tape_level() and any(t._node is not None for t in tensors):
        raise errors.runtime_error(
            _OWNER, "a gradient is taken of a compiled function from outside, where the parts of other "
            "ranks are not "
            "known",
            hint="compile what takes the gradient: TrainOneStepCell, Model.train, or jit around "
            "value_and_grad",
        )  # fmt: skip


def _result(value: Value, batch: dict[int, Any]) -> Placed:
    """Where a result of the function lies: with the rows of a batch, or whole."""
    rank = value.type.rank
    if rank and value.type.shape[0] in batch:
        return Placed((batch[value.type.shape[0]], *((),) * (rank - 1)))
    return whole(rank)


def _cut(parameter: Tensor, share: GridShare) -> None:
    """Leaves this rank's part of a Parameter."""
    part = _C.from_array(np.ascontiguousarray(share.of(parameter._bits())), parameter.dtype, False)
    parameter._assign(part)
    parameter.share, parameter.sliced = share, True
    world.laid_out()


def _checksum(parameter: Parameter) -> tuple[str, int] | None:
    """The name of a whole Parameter and a sum of its bytes; None for one that is cut already."""
    if parameter.share is not None:
        return None
    return parameter.name, zlib.crc32(np.ascontiguousarray(parameter._bits()).view(np.uint8).reshape(-1))


class Divided(Compiled):
    """One function for one signature, on this rank."""

    __slots__ = ("sums",)

    def __init__(
        self, graph: Graph, inputs: list[Tensor], targets: list[Tensor], count: int, build: Callable,
        sums: Sequence[Any],
    ) -> None:  # fmt: skip
        super().__init__(graph, inputs, targets, count, build)
        self.sums: Sequence[Any] | None = sums

    def __call__(self, tensors: list[Tensor]) -> Any:
        if self.sums is not None:
            self.agree()
        _require_no_tape([*tensors, *self.inputs])
        return super().__call__(tensors)

    def agree(self) -> None:
        """RuntimeError, on all ranks, if whole Parameters are not the same everywhere: each rank would go on
        with numbers of its own.
        """
        sums = [s for s in self.sums or () if s is not None]
        self.sums = None
        told = world.group(_OWNER, world.WORLDS[0]).all_gather_object(sums)
        for rank, others in enumerate(told):
            for (name, own), (_, theirs) in zip(told[0], others):
                if own != theirs:
                    raise errors.runtime_error(
                        _OWNER, f"the Parameter {name!r} is not the same on rank 0 and on rank {rank}",
                        hint="set_seed before the network is made gives all ranks the same values",
                    )  # fmt: skip
