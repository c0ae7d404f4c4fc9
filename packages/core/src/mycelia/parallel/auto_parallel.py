"""`AutoParallel`: a network with the settings of its division. On one device it runs as it is."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.nn.cell import Cell


def _option(name: str, doc: str, parameters: str = ""):
    """A method that notes a setting; its parameters have the names and defaults that users write."""
    names = [p.split("=")[0].strip() for p in parameters.split(",") if p.strip()]
    scope: dict = {"ignored": ignored}
    values = ", ".join(f"{n!r}: {n}" for n in names)
    exec(
        f"def {name}(self{', ' if parameters else ''}{parameters}):\n"
        f"    self.options[{name!r}] = {{{values}}}\n"
        f"    ignored.tell('AutoParallel', {name!r}, self.options[{name!r}], 'one process computes all')",
        scope,
    )
    scope[name].__doc__ = doc
    return scope[name]


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
        if self.get_pipeline_stages() > 1:
            raise errors.error(
                errors.MyceliaRuntimeError, "AutoParallel",
                f"{self.get_pipeline_stages()} stages need as many processes, and this one runs alone",
            )  # fmt: skip
        return self.network(*args, **kwargs)

    def get_pipeline_stages(self):
        """Stages of the pipeline: those that `pipeline` was told, else 1."""
        return self.options.get("pipeline", {}).get("stages", 1)

    dataset_strategy = _option("dataset_strategy", "How batches are divided.", "config")
    comm_fusion = _option("comm_fusion", "How collectives are joined.", "config")
    transformer_opt = _option("transformer_opt", "A file with options of transformers.", "file_path")
    load_param_strategy_file = _option("load_param_strategy_file", "Strategies of Parameters.", "file_path")
    save_param_strategy_file = _option("save_param_strategy_file", "Where they are written.", "file_path")
    load_operator_strategy_file = _option("load_operator_strategy_file", "Strategies of ops.", "file_path")
    save_operator_strategy_file = _option(
        "save_operator_strategy_file", "Where they are written.", "file_path"
    )
    set_group_ckpt_save_file = _option("set_group_ckpt_save_file", "Where groups are written.", "file_path")
    dump_local_norm = _option("dump_local_norm", "Where norms of gradients are written.", "file_path")
    no_init_parameters_in_compile = _option("no_init_parameters_in_compile", "Parameters are filled later.")
    print_local_norm = _option("print_local_norm", "Norms of gradients are printed.")
    enable_device_local_norm = _option("enable_device_local_norm", "Norms are those of a device.")
    enable_gradients_mean = _option("enable_gradients_mean", "Gradients of devices are averaged, not added.")
    enable_fp32_communication = _option("enable_fp32_communication", "Gradients are sent as float32.")
    disable_gradient_fp32_sync = _option("disable_gradient_fp32_sync", "Gradients are sent as they are.")
    disable_loss_repeated_mean = _option("disable_loss_repeated_mean", "Repeated losses are not averaged.")
    disable_strategy_file_only_for_trainable_params = _option(
        "disable_strategy_file_only_for_trainable_params", "Strategy files hold all Parameters."
    )
    hsdp = _option(
        "hsdp", "Optimizer states are divided.", "shard_size=-1, threshold=64, optimizer_level='level1'"
    )
    pipeline = _option(
        "pipeline",
        "Layers are divided.",
        "stages=1, output_broadcast=False, interleave=False, scheduler='1f1b'",
    )
