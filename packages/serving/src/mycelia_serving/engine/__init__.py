"""Runs one version of one servable in this process: models, functions, batches.

engine = Engine("servables", "add", 1)
engine.start()
engine.submit("add_common", [{"x1": a, "x2": b}], print)
engine.close()
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from mycelia_serving.engine.executors import (
    Executor,
    Intake,
    Job,
    ModelExecutor,
    Plan,
    RemoteModelExecutor,
    Step,
    Task,
)
from mycelia_serving.engine.loaders import ModelOptions, load
from mycelia_serving.engine.models import BatchModel
from mycelia_serving.engine.plans import Planner
from mycelia_serving.engine.scheduler import Scheduler
from mycelia_serving.errors import Code, ServingError, clip
from mycelia_serving.request import Instance, MethodInfo, Result
from mycelia_serving.servable import directory
from mycelia_serving.servable.config import CONFIG_S, load_config, unload
from mycelia_serving.servable.declaration import Declaration
from mycelia_serving.servable.model import Model

__all__ = ["Engine"]

log = logging.getLogger("mycelia_serving")

DELEGATED_S = 3600.0  # how long a function waits for a model of another worker


class Engine:
    """One version of a servable, loaded.

    servable_directory, servable_name: the folder DIRECTORY/NAME holds `servable_config.py` and the versions.
    version: number of a version, 0 for the newest.
    device_type: "CPU" or None (the best that is there); others name the backend that is missing.
    dec_key, dec_mode: of encrypted models.
    max_batch_size: largest batch of a model whose first dimension is open, and of its stages.
    max_batch_delay_ms: how long a batch that is not full waits for more instances; what `servable_config.py`
    declares goes first.
    functions_only: models are not loaded, their stages go to `call_model(model_key, subgraph, inputs, done)`
    with one tuple of arrays per instance; `done` takes a list with a tuple of arrays or a ServingError each.
    threads: how many functions and models may run at once.
    config_timeout_s: how long the import of the config may take.
    leader: for a distributed model, the fields of `distributed.leader.LeaderOptions`.
    Errors: `start` raises RuntimeError that names file and cause.
    """

    def __init__(
        self,
        servable_directory: str,
        servable_name: str,
        version: int = 0,
        *,
        device_type: str | None = None,
        device_id: int = 0,
        dec_key: bytes | None = None,
        dec_mode: str = "AES-GCM",
        max_batch_size: int = 32,
        max_batch_delay_ms: float = 0,
        functions_only: bool = False,
        call_model: Callable | None = None,
        threads: int = 4,
        config_timeout_s: float = CONFIG_S,
        leader: dict | None = None,
    ) -> None:
        self.servable_name = servable_name
        self.version = version  # after `start` the number that was found
        self.infos: tuple[MethodInfo, ...] = ()  # after `start`
        self.batch_size = 0  # largest batch of its models, 1 without models; after `start`
        self.model_files: tuple[str, ...] = ()  # after `start`
        self.load_seconds = 0.0
        self._directory = servable_directory
        self._options = {
            "device_type": device_type,
            "device_id": device_id,
            "dec_key": dec_key,
            "dec_mode": dec_mode,
        }
        self._max_batch_size = max_batch_size
        self._delay = max_batch_delay_ms / 1000
        self._functions_only = functions_only
        self._call_model = call_model
        self._threads = threads
        self._config_timeout_s = config_timeout_s
        self._leader = leader
        self._declaration: Declaration | None = None
        self._models: dict[tuple[str, int], BatchModel] = {}
        self._executors: dict[object, Executor] = {}  # by (model key, sub-graph) or (function, batch size)
        self._plans: dict[str, Plan] = {}
        self._model_plans: dict[tuple[str, int], Plan] = {}
        self.scheduler: Scheduler | None = None  # after `start`

    # ---- starting ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Imports the config, loads the models and runs each once."""
        began = time.monotonic()
        declaration = self._declaration = load_config(
            self._directory, self.servable_name, self._config_timeout_s
        )
        try:
            has_models = any(model.declared.files for model in declaration.models)
            self.version = directory.choose_version(declaration.folder, self.version, has_models)
            self._check_device()
            self.model_files = tuple(
                directory.model_path(declaration.folder, self.version, file)
                for model in declaration.models
                for file in model.declared.files
            )
            for model in declaration.models:
                self._load(model)
            limits = [m.limit for m in self._models.values()]
            self.batch_size = max(limits, default=self._max_batch_size if self._functions_only else 1)
            planner = Planner(self._models, self._executors, self._threads, self.batch_size)
            for method in declaration.methods.values():
                self._plans[method.name] = planner.plan(method)
        except Exception as error:
            self._unload()
            if isinstance(error, RuntimeError):
                raise
            raise RuntimeError(f"The servable '{self.servable_name}' cannot be started: {error}") from error
        self.infos = tuple(planner.info(method) for method in declaration.methods.values())
        self.scheduler = Scheduler(
            self.servable_name, list(self._executors.values()), self._threads, self._open
        )
        self.load_seconds = time.monotonic() - began

    def _check_device(self) -> None:
        device, number = self._options["device_type"], self._options["device_id"]
        if device is not None and device.upper() == "CPU" and number != 0:
            log.info("device_id %d of the CPU means nothing: it is one device", number)

    def _load(self, model: Model) -> None:
        """Loads all sub-graphs of a model, or makes stand-ins for those of another worker."""
        declared = model.declared
        config_file = declared.config_file
        if config_file is not None:
            config_file = os.path.join(self._declaration.folder, config_file)
            if not os.path.isfile(config_file):
                raise RuntimeError(f"The config file {config_file} of '{declared.key}' does not exist")
        options = ModelOptions(**self._options, context=declared.context, config_file=config_file)
        delay = self._delay
        if declared.max_batch_delay_ms is not None:
            delay = declared.max_batch_delay_ms / 1000
        if declared.ranks is not None:
            self._lead(model)
        for subgraph, file in enumerate(declared.files):
            key = (model.model_key, subgraph)
            if self._functions_only:
                run = self._remote(key)
                self._executors[key] = RemoteModelExecutor(file, self._max_batch_size, run)
                continue
            path = directory.model_path(self._declaration.folder, self.version, file)
            loaded = BatchModel(
                load(declared.format, path, options), declared, subgraph, self._max_batch_size
            )
            try:
                loaded.warm_up()
            except Exception as error:
                raise RuntimeError(f"The model file {path} was loaded, but does not run: {error}") from error
            self._models[key] = loaded
            self._executors[key] = ModelExecutor(loaded, delay)
        model.run = self._caller(model)

    def _lead(self, model: Model) -> None:
        """Waits for the agents of a distributed model."""
        from mycelia_serving.distributed.leader import Leader, LeaderOptions

        declared = model.declared
        if self._leader is None:
            raise RuntimeError(
                f"The model of '{declared.key}' is distributed: use distributed.start_servable"
            )
        leader = Leader(declared, LeaderOptions(**self._leader))
        try:
            leader.start()
            loaded = BatchModel(leader, declared, 0, self._max_batch_size)
            loaded.warm_up()
        except Exception:
            leader.close()
            raise
        self._models[model.model_key, 0] = loaded
        self._executors[model.model_key, 0] = ModelExecutor(loaded, self._delay)

    def _caller(self, model: Model) -> Callable:
        """What `Model.call` of a function does."""
        count = len(model.declared.files) or 1

        def run(instances: list[tuple], subgraph: int) -> list[tuple]:
            if subgraph >= count:
                raise RuntimeError(f"the model has no sub-graph {subgraph}, it has {count}")
            key = (model.model_key, subgraph)
            if not self._functions_only:
                return self._models[key].call(instances)
            results = self._remote(key)(instances)
            for result in results:
                if isinstance(result, ServingError):
                    raise RuntimeError(result.message)
            return results

        return run

    def _remote(self, key: tuple[str, int]) -> Callable[[list[tuple]], list]:
        """Runs a model of another worker and waits for it."""

        def run(instances: list[tuple]) -> list:
            ready = threading.Event()
            answer: list = []

            def done(results: list) -> None:
                answer.extend(results)
                ready.set()

            self._call_model(*key, instances, done)
            if not ready.wait(DELEGATED_S):
                raise RuntimeError("the worker with the model did not answer")
            return answer

        return run

    # ---- serving -------------------------------------------------------------------------------------------

    def submit(
        self,
        method: str,
        instances: list[Instance],
        done: Callable[[list[Result]], None],
        *,
        deadline: float | None = None,
        priority: int = 0,
        more: bool = False,
    ) -> None:
        """Answers by calling `done` once, with one result per instance in order; never blocks or raises.

        `done` runs in a thread of the engine (or in the caller's, if nothing could be started); it is short.
        deadline: `time.monotonic()` after which what is not answered yet is answered with `Code.DEADLINE`.
        more: other calls follow at once, and then `run_inline`.
        """
        plan = self._plans.get(method)
        if plan is None:
            error = ServingError(
                Code.NOT_FOUND, f"The servable '{self.servable_name}' has no method '{clip(method)}'"
            )
            done([error] * len(instances))
            return
        job = Job(len(instances), done, deadline, priority)
        tasks = self._tasks(plan, job, instances)
        if tasks:
            self.scheduler.submit(job, tasks, more)
        else:
            done(job.results)

    def _tasks(self, plan: Plan, job: Job, instances: list[Instance]) -> list[Task]:
        """The tasks of a job; what needs none has its result."""
        tasks = []
        for index, instance in enumerate(instances):
            task = self._enter(job, index, plan, instance)
            if type(task) is Task:
                tasks.append(task)
            else:
                job.results[index] = task
        job.left = len(tasks)
        return tasks

    @property
    def staged_methods(self) -> frozenset[str]:
        """Methods whose instances an intake may have: those with a stage."""
        return frozenset(name for name, plan in self._plans.items() if plan.first is not None)

    def take_from(self, intake: Intake) -> None:
        """Take instances of the methods with stages from there, whenever some can run."""
        for executor in self._executors.values():
            methods = tuple(
                [name for name in self.staged_methods if self._plans[name].first.executor is executor]
            )
            executor.intake, executor.queues = intake, intake.queues(methods)

    def _open(self, call) -> tuple[Job, list[Task]]:
        """The job and the tasks of a call from an intake."""
        job = Job(len(call.instances), call.done, call.deadline, call.priority)
        try:
            return job, self._tasks(self._plans[call.method], job, call.instances)
        except Exception as error:  # it was taken: nobody else answers it
            log.exception("a call of %s cannot be begun", call.method)
            failed = ServingError(Code.SYSTEM_ERROR, f"an error inside the server: {type(error).__name__}")
            job.results, job.left = [failed] * len(call.instances), 0
            return job, []

    def begin(self, call) -> None:
        """Take a call that was taken from an intake already; `wake` or `run_inline` follows."""
        job, tasks = self._open(call)
        if tasks:
            self.scheduler.submit(job, tasks, True)
        else:
            call.done(job.results)

    def wake(self) -> None:
        """There is more in the intake."""
        self.scheduler.wake()

    def run_inline(self) -> None:
        """Lets the calling thread run what is there and quick; wakes another one for the rest."""
        self.scheduler.run_inline()

    def _enter(self, job: Job, index: int, plan: Plan, instance: Instance) -> Task | Result:
        """The task of an instance, or its result if there is nothing to run."""
        try:
            values = [instance[name] for name in plan.inputs]
        except KeyError as missing:
            return ServingError(
                Code.INVALID_INPUTS,
                f"The input {missing} of servable '{self.servable_name}', method '{plan.name}', is missing",
            )
        except TypeError:
            if isinstance(instance, ServingError):
                return instance
            raise
        if plan.room:
            values += [None] * plan.room
        task = Task(job, index, plan, values)
        if plan.first is None:
            return task.result()
        return task.enter(plan.first) or task

    def run_model(
        self, model_key: str, subgraph: int, inputs: list[tuple], done: Callable[[list], None]
    ) -> None:
        """The other end of another engine's `call_model`: runs a model for instances, tuples of inputs.

        `done` gets a tuple of outputs, or a ServingError, for each.
        """
        key = (model_key, subgraph)
        plan = self._model_plans.get(key)
        if plan is None:
            model = self._models.get(key)
            if model is None or not model.outputs:
                error = ServingError(
                    Code.NOT_FOUND, f"There is no model '{clip(model_key)}' for other workers"
                )
                done([error] * len(inputs))
                return
            count, results = len(model.inputs), len(model.outputs)
            places = tuple(range(count, count + results))
            plan = Plan(model_key, tuple(map(str, range(count))), (), places, results)
            plan.first = Step(self._executors[key], tuple(range(count)), places, model_key, 1, made=True)
            self._model_plans[key] = plan
        job = Job(len(inputs), done, None, 0)
        tasks = []
        for index, values in enumerate(inputs):
            error: ServingError | None
            if len(values) != len(plan.inputs):
                error = ServingError(
                    Code.INVALID_INPUTS,
                    f"The model '{model_key}' has {len(plan.inputs)} inputs, but got {len(values)}",
                )
            else:
                task = Task(job, index, plan, [*values, *[None] * plan.room])
                error = task.enter(plan.first)
            if error is None:
                tasks.append(task)
            else:
                job.results[index] = error
        job.left = len(tasks)
        if tasks:
            self.scheduler.submit(job, tasks)
        else:
            done(job.results)

    def pending(self) -> int:
        """Instances that are not answered yet."""
        return self.scheduler.pending if self.scheduler else 0

    def close(self, drain_seconds: float = 0) -> None:
        """Answers what is there for up to `drain_seconds`, the rest with `Code.STOPPING`; ends threads."""
        if self.scheduler is not None:
            self.scheduler.close(drain_seconds)
        if self._declaration is not None:
            self._unload()

    def _unload(self) -> None:
        for model in self._models.values():
            end = getattr(model.loaded, "close", None)
            if end is not None:
                end()
        unload(self._declaration)
