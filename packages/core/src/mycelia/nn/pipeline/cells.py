"""`PipelineCell`: a network on micro-batches, by the stages that its Cells are given, or by one process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mycelia.engine import _C, dispatch
from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.base import errors, ignored, parallel_settings
from mycelia.engine.capture.trace import of_this_thread
from mycelia.engine.communication import stages, world
from mycelia.engine.communication.stages import Stage
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.parameters import release
from mycelia.nn.pipeline import schedule
from mycelia.nn.pipeline.capture import Captured, capture
from mycelia.nn.pipeline.partition import Part, cut, require_stages
from mycelia.nn.pipeline.run import Plan, Run


class PipelineCell(Cell):
    """A network whose batch is cut into `micro_size` parts along the first axis; the sum of their outputs.

    With the setting `pipeline_stages` above 1 and several processes each computes the Cells of its stage
    (`cell.pipeline_stage`), and keeps their Parameters only, from the first call on. All stages get the whole
    batch, and the result. Within a gradient the micro-batches go forwards and backwards in the order that the
    setting `pipeline_config` names, and all gradients are those of the one number that the sum of outputs is.
    `most_held`: how many micro-batches the last such call held at one time.

    `stage_config`: cell name -> stage; `segment_config`: cell name -> segment, which is checked and kept.
    Errors: TypeError, ValueError, KeyError for a cell that is not there; of a call ValueError if `micro_size`
    does not divide a batch, for stages that are not there or that have no cells, and for ranks that are given
    other batches; NotImplementedError for gradients of inputs, of outputs that are no single number, and of
    gradients.
    """

    @ignored.arguments(segment_config="the stages of a process are not interleaved")
    def __init__(self, network, micro_size, stage_config=None, segment_config=None):
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise errors.type_error(
                "PipelineCell", f"network must be a Cell, but got {type(network).__name__}"
            )
        if isinstance(micro_size, bool) or not isinstance(micro_size, int):
            raise errors.type_error("PipelineCell", f"micro_size must be an int, but got {micro_size!r}")
        if micro_size < 1:
            raise errors.value_error("PipelineCell", f"micro_size must be positive, but got {micro_size}")
        self.network, self.micro_size = network, micro_size
        self.most_held = 0
        self.__dict__["_plans"] = {}
        for config, mark in ((stage_config, "pipeline_stage"), (segment_config, "pipeline_segment")):
            cells = dict(network.cells_and_names())
            for name, number in (config or {}).items():
                if name not in cells and name != "self":
                    raise errors.error(
                        errors.MyceliaKeyError, "PipelineCell", f"the network has no cell '{name}'"
                    )
                setattr(cells.get(name, network), mark, number)

    def construct(self, *args, **kwargs):
        return self._result(args, kwargs, None)

    def scaled(self, scale, *args, **kwargs):
        """Its result. A gradient, which must be taken of ``result * scale``, begins as `scale` in the last
        stage, so that short floats do not lose it on the way.
        """
        return self._result(args, kwargs, scale)

    def _result(self, args: tuple, kwargs: dict, seed):
        _check_batch(self.micro_size, args, kwargs)
        stage = stages.current("PipelineCell")
        if stage is None:
            return self._alone(args, kwargs)
        if not isinstance(seed, Tensor) and seed is not None:
            seed = Tensor(float(seed))
        return self._staged(stage, args, kwargs, seed)

    def _alone(self, args: tuple, kwargs: dict):
        total = None
        for i in range(self.micro_size):
            part, named = self._part(i, args, kwargs)
            output = self.network(*part, **named)
            total = output if total is None else total + output
        return total

    def _part(self, i: int, args: tuple, kwargs: dict) -> tuple[list, dict]:
        return (
            [_rows(a, i, self.micro_size) for a in args],
            {name: _rows(a, i, self.micro_size) for name, a in kwargs.items()},
        )

    # ---- stages

    def _call_detour(self, args: tuple, kwargs: dict):
        if not _C.mode() & dispatch.TRACING and stages.current("PipelineCell") is not None:
            return self._run(args, kwargs)  # in graph mode its stages are compiled, one by one
        return super()._call_detour(args, kwargs)

    def _run_marked(self, args: tuple, kwargs: dict):
        if stages.current("PipelineCell") is not None:
            return self._run(args, kwargs)  # there is no forward pass that could wait for its gradient
        return super()._run_marked(args, kwargs)

    def _staged(self, stage: Stage, args: tuple, kwargs: dict, seed: Tensor | None) -> Tensor:
        level = _C.tape_level()
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        if level and any(t._node is not None for t in tensors):
            raise _unsupported("gradients of its inputs are not sent to all stages: take those of Parameters")
        if level > 1:
            raise _unsupported("gradients of gradients would cross stages several times")
        plan = self._plan(stage, args, kwargs)
        if level and plan.captured.output.type.size != 1:
            raise _unsupported(
                f"gradients begin at one number, but the network gives {plan.captured.output.type}: let it "
                "return a loss that is reduced"
            )
        parameters = [t for t, _ in plan.part.inputs if isinstance(t, Parameter) and t._node is not None]
        run = Run(plan, tensors, parameters if level else None, seed)
        _C.set_tape_level(0)
        try:
            total = run.go(self._steps(stage, bool(level)))
        finally:
            _C.set_tape_level(level)
        if not level and of_this_thread() is None:
            return total
        if not level:  # a gradient that reaches any of the Parameters is refused on all stages
            trained = [t for t, _ in plan.part.inputs if isinstance(t, Parameter) and t.requires_grad]
            return custom_vjp(_as_it_is, _refuse)(total, *trained)
        self.__dict__["most_held"] = run.most_held

        def gradients(ct) -> list:
            ratio = ct if seed is None else ct / seed.reshape(()).astype(ct.dtype)
            if of_this_thread() is None and ratio.item() == 1:
                return run.gradients
            one = ratio.reshape(())
            return [None if g is None else g * one.astype(g.dtype) for g in run.gradients]

        if parameters:
            _C.custom("PipelineCell", tuple(parameters), (total,), gradients)
        return total

    def _steps(self, stage: Stage, trains: bool) -> list[schedule.Step]:
        if not trains:
            return schedule.forward(self.micro_size)
        scheduler = parallel_settings.get_auto_parallel_context("pipeline_scheduler")
        return schedule.order(scheduler, stage.number, stage.count, self.micro_size)

    def _plan(self, stage: Stage, args: tuple, kwargs: dict) -> Plan:
        """How this process takes part for arguments like these."""
        from mycelia.engine.compile.frontend import cell_guards, holds

        if of_this_thread() is not None:
            return self._planned(stage, args, kwargs)
        kinds = tuple(map(_kind, args)), tuple((name, _kind(a)) for name, a in kwargs.items())
        key = stage, self.micro_size, id(self.network), *kinds
        known = self._plans.get(key)
        if known is not None and holds(known[1]):
            return known[0]
        plan = self._planned(stage, args, kwargs)
        guards = [guard for _, cell in self.network.cells_and_names() for guard in cell_guards(cell)]
        self._plans[key] = plan, guards
        return plan

    def _planned(self, stage: Stage, args: tuple, kwargs: dict) -> Plan:
        require_stages(self.network, stage.count)
        part, named = self._part(0, args, kwargs)
        captured = capture(self, self.network, tuple(part), named)
        parts = cut(captured, stage.count)
        if of_this_thread() is None:
            self._agree(stage, parts, (*args, *kwargs.values()))
        giver = next(p.number for p in parts if p.gives)
        _keep(captured, parts, stage)
        return Plan(captured, parts[stage.number], stage, giver, self.micro_size)

    def _agree(self, stage: Stage, parts: list[Part], arguments: Sequence) -> None:
        """Errors: ValueError unless stages are cut alike, and have the same batch and shared Parameters."""
        scheduler = parallel_settings.get_auto_parallel_context("pipeline_scheduler")
        shared = {
            t.name: _digest([t]) for t, owners in _owners(parts) if len(owners) > 1 and stage.number in owners
        }
        line = tuple(stage.rank(i) for i in range(stage.count))
        told = world.group("PipelineCell", stages.group(line)).all_gather_object(
            ([p.described() for p in parts], self.micro_size, scheduler, _digest(arguments), shared)
        )
        first = told[0]
        for i, other in enumerate(told):
            whats = (
                "networks that are cut alike",
                "one micro_size",
                "one pipeline_scheduler",
                "the same batch",
            )
            for what, a, b in zip(whats, first, other):
                if a != b:
                    raise errors.value_error(
                        "PipelineCell", f"all stages of a pipeline must be given {what}, but rank {line[i]} "
                        f"(stage {i}) has another than rank {line[0]} (stage 0)",
                        hint="num_shards of a dataset: the ranks of a stage; shard_id: rank % num_shards",
                    )  # fmt: skip
        for name in {name for *_, own in told for name in own}:
            if len({own[name] for *_, own in told if name in own}) > 1:
                raise errors.value_error(
                    "PipelineCell", f"stages share the Parameter '{name}', but begin with other values of it",
                    hint="set_seed on all ranks, or load one checkpoint",
                )  # fmt: skip


def _unsupported(why: str) -> Exception:
    return errors.error(errors.NotSupportedError, "PipelineCell", f"over several stages {why}")


def _as_it_is(x, *parameters):
    del parameters  # it depends on them
    return x.reshape(x.shape)


def _refuse(*_):
    """The gradient of a result that a compiled function has without one."""
    raise _unsupported(
        "the gradient must be taken inside of the compiled function that calls it, or none be compiled"
    )


def _check_batch(micro_size: int, args: tuple, kwargs: dict) -> None:
    for name, a in (*enumerate(args), *kwargs.items()):
        if not isinstance(a, Tensor):
            if a is not None and not isinstance(a, (bool, int, float, str)):
                raise errors.type_error(
                    "PipelineCell", f"argument {name} must be a Tensor, which is cut, or a number, but got "
                    f"{type(a).__name__}",
                )  # fmt: skip
        elif not a.ndim or a.shape[0] % micro_size:
            raise errors.value_error(
                "PipelineCell",
                f"micro_size {micro_size} does not divide the batch: argument {name} has "
                f"shape {list(a.shape)}",
            )


def _rows(a, i: int, micro_size: int):
    if not isinstance(a, Tensor):
        return a
    rows = a.shape[0] // micro_size
    return a[i * rows : (i + 1) * rows]


def _kind(a):
    return (a.dtype, tuple(a.shape)) if isinstance(a, Tensor) else (type(a), a)


def _digest(values: Sequence) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        if isinstance(value, Tensor):
            digest.update(f"{value.dtype} {value.shape}".encode())
            digest.update(value._bits().tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.digest()


def _owners(parts: Sequence[Part]) -> list[tuple[Parameter, tuple[int, ...]]]:
    """The Parameters that stages use, each with their numbers; streams of random numbers are everywhere."""
    found: dict[int, tuple[Parameter, list[int]]] = {}
    for part in parts:
        for tensor, _ in part.inputs:
            if isinstance(tensor, Parameter) and tensor.name != "random_state":
                found.setdefault(id(tensor), (tensor, []))[1].append(part.number)
    return [(tensor, tuple(numbers)) for tensor, numbers in found.values()]


def _keep(captured: Captured, parts: Sequence[Part], stage: Stage) -> None:
    """From now on Parameters that only other stages use have no values here."""
    for parameter, owners in _owners(parts):
        parameter.stages = owners
        parameter.elsewhere = stage.number not in owners
        if parameter.elsewhere:
            release(parameter)
