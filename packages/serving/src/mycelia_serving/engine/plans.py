"""What a method needs to run: executors for its stages in a plan, and what clients may know of it."""

from __future__ import annotations

from mycelia_serving.engine.executors import Executor, FunctionExecutor, Plan, Step
from mycelia_serving.engine.models import BatchModel
from mycelia_serving.request import MethodInfo, TensorInfo
from mycelia_serving.servable.declaration import Function, Method, Stage
from mycelia_serving.servable.model import Model


class Planner:
    """Makes the plans of methods. Errors: RuntimeError for a stage that does not fit its model.

    models: those of this process, by key and sub-graph. executors: of all models; those of functions are
    added.
    """

    def __init__(
        self,
        models: dict[tuple[str, int], BatchModel],
        executors: dict[object, Executor],
        threads: int,
        batch_size: int,
    ) -> None:
        self._models = models
        self._executors = executors
        self._threads = threads
        self._batch_size = batch_size

    def plan(self, method: Method) -> Plan:
        """The steps of a method, each at its executor."""
        room = method.values - len(method.inputs)
        plan = Plan(method.name, method.inputs, method.outputs, method.results, room)
        before: list[Executor] = []
        last: Step | None = None
        for stage in method.stages:
            executor = self._executor(stage, method)
            made = any(place >= len(method.inputs) for place in stage.inputs)
            step = Step(executor, stage.inputs, stage.outputs, method.name, stage.number, made)
            executor.depth = max(executor.depth, stage.number)
            executor.upstream |= {u for u in before if u is not executor}
            before.append(executor)
            if last is None:
                plan.first = step
            else:
                last.next = step
            last = step
        return plan

    def _executor(self, stage: Stage, method: Method) -> Executor:
        target = stage.target
        if isinstance(target, Function):
            limit = stage.batch_size or self._batch_size
            return self._executors.setdefault((target, limit), FunctionExecutor(target, limit, self._threads))
        key = (target.model_key, 0)
        model = self._models.get(key)
        if model is not None:
            where = f"The method '{method.name}', stage {stage.number}, gives the model '{target.model_key}'"
            if len(stage.inputs) != len(model.inputs):
                raise RuntimeError(
                    f"{where} {len(stage.inputs)} inputs, but the model has {len(model.inputs)}"
                )
            if model.outputs and len(stage.outputs) != len(model.outputs):
                raise RuntimeError(
                    f"{where} {len(stage.outputs)} outputs, but the model has {len(model.outputs)}"
                )
        return self._executors[key]

    def info(self, method: Method) -> MethodInfo:
        """What clients may know: the types of values that go into or come out of a model as they are."""
        known: dict[int, TensorInfo] = {}
        for stage in method.stages:
            if isinstance(stage.target, Function):
                continue
            model = self._models.get((stage.target.model_key, 0))
            if model is None:
                continue
            for place, one in zip(stage.inputs, model.inputs):
                known.setdefault(place, TensorInfo(one.name, str(one.dtype), one.shape, one.batched))
            for place, one in zip(stage.outputs, model.outputs):
                known[place] = one
        batch = 0
        for stage in method.stages:
            if isinstance(stage.target, Model):
                if stage.target.declared.with_batch_dim:
                    batch = max(batch, self._executors[(stage.target.model_key, 0)].limit)
            elif stage.batch_size is not None:
                batch = max(batch, stage.batch_size or self._batch_size)

        def info(name: str, place: int) -> TensorInfo:
            one = known.get(place)
            return (
                TensorInfo(name, one.dtype, one.shape, one.batched) if one else TensorInfo(name, None, None)
            )

        return MethodInfo(
            method.name,
            tuple(info(name, i) for i, name in enumerate(method.inputs)),
            tuple(info(name, i) for name, i in zip(method.outputs, method.results)),
            batch,
            method.retry,
            method.default,
        )
