"""Names of `Cell` that say how a network is compiled, scoped or spread over devices.

Here a network runs in one process, so those of placement keep what they are told, and a warning says what
does not happen.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from enum import Enum

from mycelia.engine.base import config, errors, ignored, log
from mycelia.engine.sharding import annotate


class MixedPrecisionType(Enum):
    """The kind of floats a cell computes in (`Cell.to_float`)."""

    NOTSET = 0
    FP16 = 1
    FP32 = 2
    BF16 = 3
    AUTO = 4


def _kept(name: str, kind: type, default=None, low: int | None = None, missing: str = ""):
    """A property that keeps a value of one type; without a default it is absent until it is set. `missing`
    tells what does not happen for another value than 0."""

    def get(self):
        if name not in self.__dict__:
            if default is None:
                raise AttributeError(
                    f"The '{type(self).__name__}' object has no attribute '{name}'.", name=name, obj=self
                )
            self.__dict__[name] = default()
        return self.__dict__[name]

    def put(self, value):
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise errors.type_error(
                type(self).__name__, f"'{name}' must be a {kind.__name__}, but got {type(value).__name__}"
            )
        if low is not None and value < low:
            raise errors.value_error(type(self).__name__, f"'{name}' must be at least {low}, but got {value}")
        if missing and value:
            ignored.tell("Cell", name, value, missing)
        self.__dict__[name] = value

    return property(get, put)


_stage = _kept("pipeline_stage", int, low=0)


class CellMarks:
    """Part of `Cell`."""

    phase = _kept("phase", str, lambda: "train")
    bprop_debug = _kept("bprop_debug", bool, bool)
    cell_init_args = _kept("cell_init_args", str)
    enable_backward_hook = _kept("enable_backward_hook", bool)
    pipeline_segment = _kept(
        "pipeline_segment", int, low=0, missing="a process has one part of a network: its stage"
    )
    parameter_layout_dict = _kept("parameter_layout_dict", dict, dict)
    parallel_parameter_name_list = _kept("parallel_parameter_name_list", list, tuple)
    parallel_parameter_merge_net_dict = _kept("parallel_parameter_merge_net_dict", dict, dict)
    exist_names = _kept("exist_names", set, set)
    exist_objs = _kept("exist_objs", set, set)
    compile_cache = _kept("compile_cache", set, set)
    phase_cache = _kept("phase_cache", dict, dict)
    create_time = _kept("create_time", int, time.time_ns)

    @property
    def pipeline_stage(self) -> int:
        """Which stage of a pipeline computes this cell and those below it that have no other
        (`nn.PipelineCell`). Errors: AttributeError unless it was set; TypeError, ValueError for no number
        from 0 on.
        """
        return _stage.__get__(self)

    @pipeline_stage.setter
    def pipeline_stage(self, value: int) -> None:
        _stage.__set__(self, value)
        self._changed()

    @property
    def compile_phase(self) -> str | None:
        """The compile phase that was set for this cell and all below it."""
        return self.__dict__.get("_compile_phase")

    @compile_phase.setter
    def compile_phase(self, value: str) -> None:
        if not isinstance(value, str):
            raise errors.type_error(
                type(self).__name__, f"'compile_phase' must be a str, but got {type(value).__name__}"
            )
        for _, cell in self.cells_and_names():
            cell.__dict__["_compile_phase"] = value

    @property
    def compiled(self) -> bool:
        """Whether the cell was compiled in graph mode."""
        return bool(self.__dict__.get("_compiled"))

    @property
    def jit_config_dict(self) -> dict:
        """The options given by `set_jit_config`."""
        return self._jit_config

    # ---- scopes --------------------------------------------------------------------------------------------

    def get_scope(self) -> str | None:
        """The path of the cell with class names, once the network above it called `generate_scope`; it
        begins with ``recompute_`` if the cell's values are computed again in the backward pass.
        """
        scope = self.__dict__.get("_scope")
        return f"recompute_{scope or ''}" if self.__dict__.get("_recompute") else scope

    def generate_scope(self) -> None:
        """Give each cell below this one its scope, such as ``Default/conv1-Conv2d``."""
        self._scope_below("Default")

    def _scope_below(self, above: str) -> None:
        for name, cell in self.name_cells().items():
            named = config.get("reserve_class_name_in_scope")
            scope = f"{above}/{name}-{type(cell).__name__}" if named else f"{above}/{name}"
            cell.__dict__.setdefault("_scope", scope)
            cell._scope_below(scope)

    def update_cell_prefix(self) -> None:
        """Set `param_prefix` of all cells to their paths."""
        for path, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = path

    def update_cell_type(self, cell_type: str) -> None:
        """Keep a kind of network, "quant" or "second-order"."""
        self.__dict__["cell_type"] = cell_type

    def check_names_and_refresh_name(self) -> None:
        """Name all Parameters by their paths if two have one name."""
        names = [p.name for _, p in self.parameters_and_names()]
        if len(set(names)) < len(names):
            self.update_parameters_name()
            self.check_names()

    # ---- precision -----------------------------------------------------------------------------------------

    def get_mixed_precision_type(self) -> MixedPrecisionType:
        """What `to_float` or `set_mixed_precision_type` set."""
        return self.__dict__.get("_mixed_precision", MixedPrecisionType.NOTSET)

    def set_mixed_precision_type(self, mixed_type: MixedPrecisionType) -> None:
        """Keep the kind of floats; a warning says that `to_float` is what changes the computation."""
        if mixed_type is not MixedPrecisionType.NOTSET:
            ignored.tell("Cell", "set_mixed_precision_type", mixed_type, "`to_float` casts inputs")
        self.__dict__["_mixed_precision"] = mixed_type

    def cast_inputs(self, inputs, dst_type) -> None:
        """Kept for old scripts: does nothing, `to_float` casts."""
        del inputs, dst_type  # the warning says so
        log.logger(__name__).warning("Cell.cast_inputs does nothing and will go away")

    # ---- running -------------------------------------------------------------------------------------------

    def run_construct(self, cast_inputs, kwargs):
        """Call `construct` as the cell's own call would; kept for old scripts."""
        return self._run(tuple(cast_inputs), kwargs)

    def compile_and_run(self, *args, **kwargs):
        """Compile for these arguments and run."""
        self.compile(*args, **kwargs)
        from mycelia.engine.compile.jit import call_cell

        return call_cell(self, args, kwargs)

    def get_func_graph_proto(self):
        """The compiled graph as bytes: `export` writes it."""
        raise errors.error(
            errors.NotSupportedError,
            type(self).__name__,
            "get_func_graph_proto: graphs are kept in a form of their own",
            hint="mycelia.export(net, *inputs, file_name=..., file_format='MINDIR')",
        )

    # ---- several devices -----------------------------------------------------------------------------------

    def set_data_parallel(self) -> None:
        """Taken for scripts that run on several devices: a warning says that nothing is spread."""
        ignored.tell("Cell", "set_data_parallel", True, "no other process takes part")

    def offload(self, backward_prefetch="Auto") -> None:
        """Taken for scripts of devices with little memory: a warning says that nothing is moved."""
        ignored.tell("Cell.offload", "backward_prefetch", backward_prefetch, "values stay where they are")

    def set_boost(self, boost_type: str):
        """Attach the flag of a boost algorithm, which `boost.LessBN` reads. Errors: ValueError unless it is
        "less_bn"."""
        if boost_type != "less_bn":
            raise errors.one_of(boost_type, ["less_bn"], subject="set_boost", what="boost_type")
        return self.add_flags_recursive(less_bn=True)

    def set_broadcast_flag(self, mode: bool = True):
        """Attach the flag that devices begin with the same Parameters; a warning says that the setting
        `parameter_broadcast` is what sends them.
        """
        missing = "set_auto_parallel_context(parameter_broadcast=True) sends the weights of rank 0 to all"
        ignored.tell("Cell", "set_broadcast_flag", mode, missing)
        return self.add_flags_recursive(broadcast_flag=mode)

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True):
        """Set `comm_fusion` of the trainable Parameters: gradients of one number go together to the other
        processes, those of 0 alone (`nn.DistributedGradReducer`). Errors: ValueError unless it is a count.
        """
        if isinstance(fusion_type, bool) or not isinstance(fusion_type, int) or fusion_type < 0:
            raise errors.value_error(
                "set_comm_fusion", f"fusion_type must be an int >= 0, but got {fusion_type!r}"
            )
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def shard(self, in_strategy, out_strategy=None, parameter_plan=None, device="Ascend", level=0):
        """This Cell as a function whose tensors are divided among the ranks of `semi_auto_parallel`.

        `in_strategy`, `out_strategy`: an entry for each tensor, a tuple of numbers of parts, a Layout or
        None; `parameter_plan`: the same for Parameters, by their names, with or without "self." in front.
        `device` and `level` are for searches of strategies, and without effect. Errors: TypeError,
        ValueError.
        """
        del device, level
        return annotate.shard(
            type(self).__name__, self, in_strategy, out_strategy, annotate.plan(self, parameter_plan)
        )

    def parameters_broadcast_dict(self, recurse: bool = True) -> OrderedDict | None:
        """Parameter name -> Parameter of those that devices would share; None when there is none."""
        found = OrderedDict(
            (p.name, p) for p in self.get_parameters(expand=recurse) if not p.layerwise_parallel
        )
        return found or None

    def remove_redundant_parameters(self) -> None:
        """Kept for old scripts: does nothing."""
        log.logger(__name__).warning("Cell.remove_redundant_parameters does nothing and will go away")
