"""`AutoParallel`: a network with the settings of its division. On one device it runs as it is."""

from __future__ import annotations

from mycelia.engine import _C
from mycelia.engine.base import errors, ignored, parallel_settings
from mycelia.engine.communication import mode, world
from mycelia.engine.compile.jit import jit
from mycelia.engine.sharding import strategies
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.parallel.layout import Layout


class AutoParallel(Cell):
    """A network, or a function such as a whole step, that the processes which have joined compute together.
    In one that trains alone the settings are kept in `options`, and a warning says so.

    `parallel_mode`: "semi_auto", operators are divided by their strategies; "sharding_propagation", these
    go on to operators without one. Settings are those of `set_auto_parallel_context`, and hold from the call
    on that makes them; a `parallel_mode` that was set there stays. What runs is compiled, in eager mode too.
    Errors: TypeError unless a Cell or a function, ValueError for another mode; of a call RuntimeError if it
    was told of several stages, and NotImplementedError for "recursive_programming".
    """

    def __init__(self, network, parallel_mode="semi_auto"):
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise errors.type_error(
                "AutoParallel", f"network must be a Cell or a function, but got {type(network).__name__}"
            )
        modes = ("semi_auto", "sharding_propagation", "recursive_programming")
        if parallel_mode not in modes:
            raise errors.one_of(parallel_mode, modes, subject="AutoParallel", what="parallel_mode")
        self.network = network
        self.parallel_mode = parallel_mode
        self.options: dict = {}
        self.__dict__["_jitted"] = None
        if _has_joined() and parallel_settings.get_auto_parallel_context("parallel_mode") == "stand_alone":
            given = {"parallel_mode": "semi_auto_parallel"}
            if parallel_mode != "semi_auto":
                given = {"parallel_mode": "auto_parallel", "search_mode": parallel_mode}
            parallel_settings.set_auto_parallel_context(**given)

    def construct(self, *args, **kwargs):
        if self.get_pipeline_stages() > 1 and not _has_joined():
            raise errors.error(
                errors.MyceliaRuntimeError, "AutoParallel",
                f"{self.get_pipeline_stages()} stages need as many processes, and this one runs alone",
            )  # fmt: skip
        if _C.mode() & 1 or mode.dividing("AutoParallel") == 1:
            return self.network(*args, **kwargs)
        if self._jitted is None:
            network = self.network
            self.__dict__["_jitted"] = jit(lambda *args, **kwargs: network(*args, **kwargs))
        return self._jitted(*args, **kwargs)

    def get_pipeline_stages(self):
        """Stages of the pipeline: those that `pipeline` was told, else 1."""
        return self.options.get("pipeline", {}).get("stages", 1)

    def _note(self, option: str, missing: str = "nothing here follows it", **values) -> None:
        self.options[option] = values
        ignored.tell("AutoParallel", option, values, missing if _has_joined() else "one process computes all")

    def _set(self, option: str, given: dict, **settings) -> None:
        """Settings of the processes that have joined; `given`: what the method was told."""
        if _has_joined():
            parallel_settings.set_auto_parallel_context(**settings)
            self.options[option] = given
        else:
            self._note(option, **given)

    def dataset_strategy(self, config):
        """How batches are divided: "data_parallel", "full_batch", or a tuple with a tuple of numbers of parts
        or a Layout for each argument.  Errors: TypeError, ValueError.
        """
        owner = "AutoParallel.dataset_strategy"
        if not isinstance(config, (str, tuple)):
            raise errors.type_error(
                owner, f"config must be a str or a tuple, but got {type(config).__name__}"
            )
        if isinstance(config, str) and config not in ("full_batch", "data_parallel"):
            raise errors.one_of(config, ("full_batch", "data_parallel"), subject=owner, what="config")
        for one in config if isinstance(config, tuple) else ():
            if not isinstance(one, Layout):
                strategies.check_counts(owner, "config", one)
        self._set("dataset_strategy", {"config": config}, dataset_strategy=config)

    def comm_fusion(self, config):
        """How collectives are joined."""
        self._set("comm_fusion", {"config": config}, comm_fusion=config or {})

    def transformer_opt(self, file_path):
        """A file with options of transformers."""
        self._note("transformer_opt", file_path=file_path)

    def load_param_strategy_file(self, file_path):
        """Strategies of Parameters."""
        self._note("load_param_strategy_file", "layouts are those of the operators", file_path=file_path)

    def save_param_strategy_file(self, file_path):
        """Where they are written.  Errors: TypeError unless a text."""
        if not isinstance(file_path, str):
            raise errors.type_error(
                "AutoParallel.save_param_strategy_file",
                f"file_path must be a str, but got {type(file_path).__name__}",
            )
        config = {"save_file": file_path}
        self._set("save_param_strategy_file", {"file_path": file_path}, strategy_ckpt_config=config)

    def load_operator_strategy_file(self, file_path):
        """Strategies of ops."""
        self._note("load_operator_strategy_file", "operators have those of `shard`", file_path=file_path)

    def save_operator_strategy_file(self, file_path):
        """Where they are written."""
        missing = "save_param_strategy_file has the strategies of ops, too"
        self._note("save_operator_strategy_file", missing, file_path=file_path)

    def set_group_ckpt_save_file(self, file_path):
        """Where groups are written."""
        self._note("set_group_ckpt_save_file", file_path=file_path)

    def dump_local_norm(self, file_path):
        """Where norms of gradients are written."""
        self._note("dump_local_norm", file_path=file_path)

    def no_init_parameters_in_compile(self):
        """Parameters are filled later."""
        self._note("no_init_parameters_in_compile")

    def print_local_norm(self):
        """Norms of gradients are printed."""
        self._note("print_local_norm")

    def enable_device_local_norm(self):
        """Norms are those of a device."""
        self._note("enable_device_local_norm")

    def enable_gradients_mean(self):
        """Gradients of devices are averaged, not added."""
        self._set("enable_gradients_mean", {}, gradients_mean=True)

    def enable_fp32_communication(self):
        """Gradients are sent as float32."""
        self._note("enable_fp32_communication")

    def disable_gradient_fp32_sync(self):
        """Gradients are sent as they are."""
        self._note("disable_gradient_fp32_sync")

    def disable_loss_repeated_mean(self):
        """Repeated losses are not averaged."""
        self._note("disable_loss_repeated_mean")

    def disable_strategy_file_only_for_trainable_params(self):
        """Strategy files hold all Parameters."""
        self._note("disable_strategy_file_only_for_trainable_params")

    def hsdp(self, shard_size=-1, threshold=64, optimizer_level="level1"):
        """States of optimizers are divided among the processes that train together: of those in the network,
        and of divided graphs.

        `shard_size`: among how many, -1: all; `threshold`: in KB, smaller Parameters stay whole;
        `optimizer_level`: "level1", states alone; "level2", gradients, too; "level3", weights, too.
        Errors: ValueError; NotImplementedError for optimizers whose steps need whole Parameters.
        """
        if type(shard_size) is not int or shard_size == 0 or shard_size < -1:
            raise errors.value_error(
                "AutoParallel.hsdp", f"shard_size must be -1 or a positive int, but got {shard_size!r}"
            )
        if type(threshold) is not int or threshold < 0:
            raise errors.value_error(
                "AutoParallel.hsdp", f"threshold must be an int of KB from 0 on, but got {threshold!r}"
            )
        levels = ("level1", "level2", "level3")
        if optimizer_level not in levels:
            raise errors.one_of(optimizer_level, levels, subject="AutoParallel.hsdp", what="optimizer_level")
        if _has_joined():
            parallel_settings.set_auto_parallel_context(
                enable_parallel_optimizer=True, optimizer_weight_shard_size=shard_size,
                parallel_optimizer_config={
                    "parallel_optimizer_threshold": threshold, "optimizer_level": optimizer_level,
                },
            )  # fmt: skip
            given = {"shard_size": shard_size, "threshold": threshold, "optimizer_level": optimizer_level}
            self.options["hsdp"] = given
            cells = self.network.cells_and_names() if isinstance(self.network, Cell) else ()
            for _, cell in cells if mode.degree("AutoParallel.hsdp") > 1 else ():
                if isinstance(cell, Optimizer):
                    cell.share_states()
            return
        self._note("hsdp", shard_size=shard_size, threshold=threshold, optimizer_level=optimizer_level)

    def pipeline(self, stages=1, output_broadcast=False, interleave=False, scheduler="1f1b"):
        """The processes that train together compute `stages` stages of the network (`nn.PipelineCell`), in
        the order `scheduler`: "1f1b" or "gpipe"; all get the result, whatever `output_broadcast` says.

        Errors: TypeError, ValueError; NotImplementedError for other schedulers of MindSpore when the network
        is called.
        """
        owner = "AutoParallel.pipeline"
        for name, value, kind in (
            ("stages", stages, int), ("output_broadcast", output_broadcast, bool),
            ("interleave", interleave, bool), ("scheduler", scheduler, str),
        ):  # fmt: skip
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise errors.type_error(owner, f"{name} must be {kind.__name__}, but got {value!r}")
        if stages < 1:
            raise errors.value_error(owner, f"stages must be at least 1, but got {stages}")
        config = {"pipeline_interleave": interleave, "pipeline_scheduler": scheduler}
        given = {"stages": stages, "output_broadcast": output_broadcast, **config}
        if _has_joined():
            self.options["pipeline"] = given
            parallel_settings.set_auto_parallel_context(
                parallel_mode="semi_auto_parallel", pipeline_stages=stages, pipeline_config=config,
                pipeline_result_broadcast=output_broadcast,
            )  # fmt: skip
            return
        self._note("pipeline", **given)


def _has_joined() -> bool:
    """Whether other processes train together with this one."""
    place = world.place()
    return place is not None and place[1] > 1
