"""`AutoParallel`: a network with the settings of its division. On one device it runs as it is."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored, parallel_settings
from mycelia.engine.communication import mode, world
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import Optimizer


class AutoParallel(Cell):
    """Divide `network` among devices. There is one, which does all: the settings are kept in `options`, and a
    warning says so.

    `parallel_mode`: "semi_auto", "sharding_propagation" or "recursive_programming".
    Errors: TypeError unless a Cell or a function, ValueError for another mode; of a call RuntimeError if it
    was told of several stages.
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

    def construct(self, *args, **kwargs):
        if self.get_pipeline_stages() > 1 and not _has_joined():
            raise errors.error(
                errors.MyceliaRuntimeError, "AutoParallel",
                f"{self.get_pipeline_stages()} stages need as many processes, and this one runs alone",
            )  # fmt: skip
        return self.network(*args, **kwargs)

    def get_pipeline_stages(self):
        """Stages of the pipeline: those that `pipeline` was told, else 1."""
        return self.options.get("pipeline", {}).get("stages", 1)

    def _note(self, option: str, **values) -> None:
        self.options[option] = values
        ignored.tell("AutoParallel", option, values, "one process computes all")

    def dataset_strategy(self, config):
        """How batches are divided."""
        self._note("dataset_strategy", config=config)

    def comm_fusion(self, config):
        """How collectives are joined."""
        self._note("comm_fusion", config=config)

    def transformer_opt(self, file_path):
        """A file with options of transformers."""
        self._note("transformer_opt", file_path=file_path)

    def load_param_strategy_file(self, file_path):
        """Strategies of Parameters."""
        self._note("load_param_strategy_file", file_path=file_path)

    def save_param_strategy_file(self, file_path):
        """Where they are written."""
        self._note("save_param_strategy_file", file_path=file_path)

    def load_operator_strategy_file(self, file_path):
        """Strategies of ops."""
        self._note("load_operator_strategy_file", file_path=file_path)

    def save_operator_strategy_file(self, file_path):
        """Where they are written."""
        self._note("save_operator_strategy_file", file_path=file_path)

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
        self._note("enable_gradients_mean")

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
        """States of the optimizers in the network are divided among the processes that train together.

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
        if mode.degree("AutoParallel.hsdp") > 1:
            parallel_settings.set_auto_parallel_context(
                enable_parallel_optimizer=True, optimizer_weight_shard_size=shard_size,
                parallel_optimizer_config={
                    "parallel_optimizer_threshold": threshold, "optimizer_level": optimizer_level,
                },
            )  # fmt: skip
            cells = self.network.cells_and_names() if isinstance(self.network, Cell) else ()
            for _, cell in cells:
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
