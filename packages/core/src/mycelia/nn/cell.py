"""`Cell`: a function with parameters and sub-cells, the base of every layer and network."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import config, errors, ignored
from mycelia.engine.base.dtypes import DType, bfloat16, float16, float32
from mycelia.engine.capture import cache_invalidation
from mycelia.engine.capture.trace import traces
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.cell_hooks import NO_OPTIONS, CellHooks
from mycelia.nn.cell_marks import CellMarks, MixedPrecisionType
from mycelia.nn.cell_state import CellState


class _Mode:
    """Whether graph mode is on, as a plain attribute: it is read at every call of every Cell."""

    graph = config.get("mode") == config.GRAPH_MODE
    call: Callable | None = None  # of a Cell in graph mode; imported when it is needed


config.on_change("mode", lambda mode: setattr(_Mode, "graph", mode == config.GRAPH_MODE))


_PRECISIONS = {
    "fp16": MixedPrecisionType.FP16,
    "fp32": MixedPrecisionType.FP32,
    "bf16": MixedPrecisionType.BF16,
}


class Buffer:
    """A Tensor that `cell.name = Buffer(tensor)` makes a buffer of the cell."""

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        self.data, self.persistent = data, persistent


class Cell(CellState, CellHooks, CellMarks):
    """Base class: assign Parameters and Cells as attributes, write `construct`, call the object.

    `auto_prefix`: parameters of sub-cells get the attribute path in front of their name.
    """

    def __init__(self, auto_prefix: bool = True, flags: dict | None = None):
        # object.__setattr__ is not needed: plain values go to __dict__ whatever __setattr__ sees.
        d = self.__dict__
        d["_params"] = OrderedDict()
        d["_cells"] = OrderedDict()
        d["_buffers"] = OrderedDict()
        d["_auto_prefix"] = auto_prefix
        d["_param_prefix"] = ""
        d["training"] = False
        d["requires_grad"] = False
        d["_pre_hooks"] = OrderedDict()
        d["_forward_hooks"] = OrderedDict()
        d["_backward_pre_hooks"] = OrderedDict()
        d["_backward_hooks"] = OrderedDict()
        d["_hook_options"] = NO_OPTIONS
        d["_to_float"] = None
        d["_inputs"] = None
        d["_recompute"] = False
        d["_jit_config"] = {}
        d["_flags"] = {}
        d["_detour"] = type(self)._has_bprop()
        if flags:
            self.add_flags(**flags)

    @classmethod
    def _has_bprop(cls) -> bool:
        return getattr(cls, "bprop", None) is not None

    # ---- attributes ----------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            self._set_parameter(name, value)
        elif isinstance(value, Cell):
            self._set_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._set_parameter_tuple(name, value)
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Parameter):
            self._set_parameter_list(name, value)
        elif "_params" in d and name in d["_params"]:
            self._overwrite_parameter(name, value)
        elif "_buffers" in d and name in d["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise errors.type_error(
                    type(self).__name__,
                    f"attribute '{name}' is a buffer and cannot become {type(value).__name__}",
                )
            d["_buffers"][name] = d[name] = value
        elif "_cells" in d and name in d["_cells"]:
            if value is not None:
                raise errors.type_error(
                    type(self).__name__,
                    f"attribute '{name}' is a Cell and can only become another Cell or None",
                )
            d["_cells"][name] = None
            d[name] = None
        elif name == "requires_grad":
            self.set_grad(value)
        elif type(value) is Buffer:
            self.register_buffer(name, value.data, value.persistent)
        else:
            if name == "training":
                cache_invalidation.changed()
            object.__setattr__(self, name, value)

    def _require_init(self, name: str) -> dict:
        d = self.__dict__
        if "_params" not in d:
            raise errors.error(
                errors.MyceliaAttributeError,
                type(self).__name__,
                f"cannot assign '{name}' before super().__init__() was called",
            )
        return d

    def _set_parameter(self, name: str, value: Parameter) -> None:
        d = self._require_init(name)
        if name in d["_cells"]:
            raise errors.type_error(type(self).__name__, f"attribute '{name}' is already a Cell")
        if value._unnamed:
            value.name = name
            value._unnamed = False
        d["_params"][name] = value
        d[name] = value
        self._changed()

    def _set_parameter_tuple(self, name: str, value: ParameterTuple) -> None:
        d = self._require_init(name)
        seen: dict[str, Parameter] = {}
        for parameter in value:
            if parameter._unnamed:
                parameter.name = f"Parameter${len(d['_params']) + 1}"
                parameter._unnamed = False
            self._check_new_name(seen, parameter)
            d["_params"].setdefault(parameter.name, parameter)
        d[name] = value

    def _set_parameter_list(self, name: str, value) -> None:
        """A list of Parameters stays a plain value, but its names must differ."""
        seen: dict[str, Parameter] = {}
        for parameter in value:
            if isinstance(parameter, Parameter) and not parameter._unnamed:
                self._check_new_name(seen, parameter)
        self.__dict__[name] = value

    def _check_new_name(self, seen: dict, parameter: Parameter) -> None:
        if seen.setdefault(parameter.name, parameter) is not parameter:
            raise errors.value_error(
                type(self).__name__, f"two parameters are named '{parameter.name}'", hint="names must differ"
            )

    def _set_cell(self, name: str, value: Cell) -> None:
        d = self._require_init(name)
        if name in d["_params"]:
            raise errors.error(
                errors.MyceliaKeyError, type(self).__name__, f"attribute '{name}' is already a Parameter"
            )
        if d["_auto_prefix"]:
            value.update_parameters_name(name + ".")
        d["_cells"][name] = value
        d[name] = value
        self._changed()

    def _overwrite_parameter(self, name: str, value) -> None:
        if value is None:
            self._params[name] = None
            self.__dict__[name] = None
        elif isinstance(value, Tensor):
            parameter = self._params[name]
            place = parameter._tape_place
            parameter.set_data(value)
            parameter._tape_place = place
        else:
            raise errors.type_error(
                type(self).__name__,
                f"attribute '{name}' is a Parameter and cannot become {type(value).__name__}",
            )

    def __getattr__(self, name: str):
        for table in ("_params", "_buffers", "_cells"):  # hooks may put something there directly
            found = self.__dict__.get(table, {}).get(name)
            if found is not None:
                return found
        advice = "" if "_params" in self.__dict__ else " Was super().__init__() called?"
        raise AttributeError(
            f"The '{type(self).__name__}' object has no attribute '{name}'.{advice}", name=name, obj=self
        )

    def __delattr__(self, name: str) -> None:
        for table in (self._params, self._cells, self._buffers):
            table.pop(name, None)
        self._changed()
        object.__delattr__(self, name)

    # ---- calling -------------------------------------------------------------------------------------------

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Every Cell defines its own."""
        raise errors.error(
            errors.MyceliaAttributeError,
            type(self).__name__,
            "construct() is not defined",
            hint="define what the cell computes",
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._detour or _Mode.graph or traces:
            return self._call_detour(args, kwargs)
        try:
            return self.construct(*args, **kwargs)
        except AttributeError as e:
            self._explain_argument(e, args)
            raise

    def _explain_argument(self, cause: AttributeError, args: tuple) -> None:
        """Raise a TypeError that names the argument if a layer of ours was
        given something that is no Tensor.
        """
        if not type(self).__module__.startswith("mycelia."):
            return
        for position, arg in enumerate(args):
            if arg is cause.obj and not isinstance(arg, Tensor):
                names = self.construct.__code__.co_varnames[1:]
                raise errors.type_error(
                    type(self).__name__,
                    f"argument '{names[position]}' must be a Tensor, but got {type(arg).__name__}: "
                    f"{arg!r:.60}",
                ) from None

    def _call_detour(self, args: tuple, kwargs: dict):
        """Graph mode, a graph being captured, hooks, own gradient or mixed precision."""
        if _Mode.graph and not _C.mode() & (dispatch.TRACING | dispatch.BATCHING):
            if _Mode.call is None:
                from mycelia.engine.compile.jit import call_cell

                _Mode.call = staticmethod(call_cell)
            return _Mode.call(self, args, kwargs)
        return self._run_marked(args, kwargs)

    def _run_marked(self, args: tuple, kwargs: dict):
        """One call; if the cell is marked by `set_grad`, its forward pass is kept for the next gradient."""
        if not self.requires_grad or _C.tape_level() or _C.mode() & dispatch.BATCHING:
            return self._run(args, kwargs)
        from mycelia.engine.autodiff.forward_pass import keep
        from mycelia.engine.autodiff.transforms import no_gradients

        return self._run(args, kwargs) if no_gradients.active else keep(self, args, kwargs)

    def _compute(self, args: tuple, kwargs: dict):
        if self._has_precision():
            from mycelia.nn.precision import compute

            return compute(self, args, kwargs)
        return self._compute_plainly(args, kwargs)

    def _has_precision(self) -> bool:
        """Whether it computes in a float type of its own."""
        return self._to_float is not None or "_amp_auto" in self.__dict__ or "_amp_output" in self.__dict__

    def _compute_plainly(self, args: tuple, kwargs: dict):
        construct = self.construct
        if traces and _C.mode():  # this thread captures a graph
            from mycelia.engine.capture.control import callee

            traces[0].cells[id(self)] = self
            construct = callee(construct)  # with its control flow rewritten
        if "_parameter_hooks" in self.__dict__ or "_saved_tensors_hooks" in self.__dict__:
            from mycelia.nn.hooks import with_own_hooks

            construct = with_own_hooks(self, construct)
        if self._has_bprop():
            from mycelia.engine.autodiff.custom_rule import custom_vjp

            rule = self._checked_bprop if config.get("check_bprop") else self.bprop
            return custom_vjp(construct, rule)(*args, **kwargs)
        if self._recompute:
            from mycelia.engine.autodiff.recompute import run_twice

            return run_twice(self, lambda again: construct(*again, **kwargs), args)
        return construct(*args, **kwargs)

    def _checked_bprop(self, *args):
        """`bprop`, whose results must be like the arguments: ValueError for another shape, TypeError for
        another dtype."""
        gradients = self.bprop(*args)
        found = gradients if isinstance(gradients, (tuple, list)) else (gradients,)
        for i, (x, ct) in enumerate(zip(args, found)):
            if not isinstance(x, Tensor) or not isinstance(ct, Tensor):
                continue
            for what, given, made, error in (
                ("shape", x.shape, ct.shape, errors.value_error),
                ("dtype", x.dtype, ct.dtype, errors.type_error),
            ):
                if given != made:
                    raise error(
                        f"{type(self).__name__}.bprop",
                        f"result {i} must have the {what} of argument {i}, {given}, but it has {made}",
                    )
        return gradients

    def _changed(self) -> None:
        """What was compiled with this cell as it was does not hold any more."""
        self.__dict__["_version"] = self.__dict__.get("_version", 0) + 1
        cache_invalidation.changed()

    def _refresh_route(self) -> None:
        self._changed()
        self.__dict__["_detour"] = bool(
            self._pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or self._has_precision()
            or self._recompute
            or "_parameter_hooks" in self.__dict__
            or "_saved_tensors_hooks" in self.__dict__
            or self._has_bprop()
            or self.requires_grad
        )

    # ---- parameters ----------------------------------------------------------------------------------------

    def parameters_and_names(
        self, name_prefix: str = "", expand: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, Parameter) of this cell, then of its sub-cells in order; each Parameter once."""
        seen: set[int] = set()
        cells = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for path, cell in cells:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """All Parameters; with expand=False only this cell's own."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with requires_grad=True, in order."""
        return [p for p in self.get_parameters(expand=recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with requires_grad=False, in order."""
        return [p for p in self.get_parameters(expand=recurse) if not p.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict:
        """Parameter name -> Parameter."""
        return OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse))

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every Parameter `prefix` + its path.  Raises ValueError for a prefix with odd characters."""
        if not isinstance(prefix, str):
            raise errors.type_error(
                "update_parameters_name", f"prefix must be a str, but got {type(prefix).__name__}"
            )
        if prefix and not re.fullmatch(r"[0-9a-zA-Z_$./-]+", prefix):
            raise errors.value_error(
                "update_parameters_name", f"prefix {prefix!r} may hold letters, digits and _ $ . / - only"
            )
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + path

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Add a Parameter under `param_name`.

        Raises TypeError or KeyError for a bad name, or one that is an attribute already.
        """
        if not param_name or (check_name_contain_dot and "." in param_name):
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_param_to_cell",
                f"param_name must be a name without '.', but got {param_name!r}",
            )
        if hasattr(self, param_name) and param_name not in self._params:
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_param_to_cell",
                f"the cell has an attribute '{param_name}' already",
            )
        if param is None:
            self._params[param_name] = self.__dict__[param_name] = None
            return
        if not isinstance(param, Parameter):
            raise errors.type_error(
                "insert_param_to_cell", f"param must be a Parameter, but got {type(param).__name__}"
            )
        self._set_parameter(param_name, param)

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict:
        """Parameter -> itself: values are set when Parameters are made."""
        del auto_parallel_mode  # Parameters are whole
        return {p: p for p in self.get_parameters()}

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor that belongs to the state but is no Parameter.
        Raises KeyError or TypeError for bad arguments.
        """
        if not isinstance(name, str):
            raise errors.type_error("register_buffer", f"a buffer name should be a string, but got {name!r}")
        if not name or "." in name:
            raise errors.error(
                errors.MyceliaKeyError,
                "register_buffer",
                f'a name must not be empty or contain ".", but got {name!r}',
            )
        if hasattr(self, name) and name not in self._buffers:
            raise errors.error(
                errors.MyceliaKeyError, "register_buffer", f"attribute '{name}' exists already"
            )
        if tensor is not None and not isinstance(tensor, Tensor):
            raise errors.type_error(
                "register_buffer", f"tensor must be a Tensor or None, but got {type(tensor).__name__}"
            )
        self._buffers[name] = self.__dict__[name] = tensor
        hidden = self.__dict__.setdefault("_transient_buffers", set())
        hidden.discard(name) if persistent else hidden.add(name)

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path. Raises AttributeError when there is none."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        if name not in cell._buffers:
            message = f"has no attribute '{name}' that is a buffer"
            raise errors.error(errors.MyceliaAttributeError, type(cell).__name__, message)
        return cell._buffers[name]

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) pairs, each buffer once unless `remove_duplicate` is False."""
        seen: set[int] = set()
        for path, cell in self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]:
            for name, buffer in cell._buffers.items():
                if buffer is not None and id(buffer) not in seen:
                    if remove_duplicate:
                        seen.add(id(buffer))
                    yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ---- sub-cells -----------------------------------------------------------------------------------------

    def cells_and_names(self, cells: set | None = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """(path, Cell) of this cell and all below it, depth first; each Cell once."""
        seen = set() if cells is None else cells
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def cells(self):
        """The direct sub-cells."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict:
        """Attribute name -> direct sub-cell."""
        return OrderedDict((n, c) for n, c in self._cells.items() if c is not None)

    def get_sub_cell(self, target: str) -> Cell:
        """The cell at a dotted path. Raises AttributeError when there is none."""
        cell = self
        for part in filter(None, target.split(".")):
            cell = getattr(cell, part, None)
            if not isinstance(cell, Cell):
                raise errors.error(
                    errors.MyceliaAttributeError, type(self).__name__, f"there is no sub-cell '{target}'"
                )
        return cell

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Add a sub-cell. Raises KeyError for a bad or used name, TypeError when it is no Cell."""
        if not isinstance(child_name, str):
            raise errors.type_error(
                "insert_child_to_cell", f"child_name must be a str, but got {type(child_name).__name__}"
            )
        if not child_name or "." in child_name:
            raise errors.error(
                errors.MyceliaKeyError,
                "insert_child_to_cell",
                f"child_name must be a name without '.', but got {child_name!r}",
            )
        if hasattr(self, child_name) and child_name not in self._cells:
            raise errors.error(
                errors.MyceliaKeyError, "insert_child_to_cell", f"attribute '{child_name}' exists already"
            )
        if not isinstance(child_cell, Cell) and child_cell is not None:
            raise errors.type_error(
                "insert_child_to_cell", f"child_cell must be a Cell, but got {type(child_cell).__name__}"
            )
        if child_cell is None:
            self._cells[child_name] = self.__dict__[child_name] = None
        else:
            # Parameters keep their names, as in MindSpore: only assignment as an attribute adds the path.
            self._cells[child_name] = self.__dict__[child_name] = child_cell
        self._changed()

    def apply(self, fn: Callable[[Cell], None]) -> Cell:
        """Call `fn` on every sub-cell, then on this cell; returns this cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ---- modes ---------------------------------------------------------------------------------------------

    def set_train(self, mode: bool = True) -> Cell:
        """Training (True) or inference behaviour for this cell and all below it; returns the cell."""
        self.__dict__["phase"] = "train" if mode else "predict"
        for _, cell in self.cells_and_names():
            cell.__dict__["training"] = cell._flags["training"] = mode
        cache_invalidation.changed()
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Mark the cell: each call keeps what its gradient needs, and the next gradient of the cell by the
        same arguments starts there instead of running the cell again.

        So in a step that calls the cell for its loss and then a gradient function, running statistics and
        counters move once, and random numbers are drawn once. A call is kept until its gradient is taken, the
        same call comes again, or its arguments or trainable Parameters change; at most four are. Other cells
        need no mark: their gradients run them.
        """
        if self.requires_grad is not requires_grad:
            self.__dict__["requires_grad"] = requires_grad
            self.__dict__.pop("_forward_passes", None)
            self._refresh_route()
        return self

    def to_float(self, dst_type: DType) -> Cell:
        """Compute in float16, bfloat16 or float32: floating inputs of all cells are cast.
        Raises ValueError otherwise.
        """
        if dst_type not in (float16, bfloat16, float32):
            raise errors.value_error(
                "to_float", f"dst_type must be float16, float32 or bfloat16, but got {dst_type}"
            )
        flags = {"fp16": dst_type is float16, "fp32": dst_type is float32, "bf16": dst_type is bfloat16}
        kind = next(k for name, k in _PRECISIONS.items() if flags[name])
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
            cell.__dict__["_to_float"] = dst_type
            cell.__dict__["_mixed_precision"] = kind
            cell._refresh_route()
        return self

    def add_flags(self, **flags) -> Cell:
        """Attach flags to this cell; each becomes an attribute too."""
        self._flags.update(flags)
        self.__dict__.update(flags)
        if "training" in flags:
            cache_invalidation.changed()
        return self

    def add_flags_recursive(self, **flags) -> Cell:
        """Attach flags to this cell and all below it."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict:
        """The flags attached so far."""
        return self._flags

    def recompute(self, **kwargs) -> None:
        """Compute this cell's values again in the backward pass instead of keeping them (`ms.recompute`).

        MindSpore's options for several devices, `mp_comm_recompute`, `parallel_optimizer_comm_recompute` and
        `recompute_slice_activation`, are bools that have no effect, as a warning says.
        Errors: ValueError for other options, TypeError unless a bool.
        """
        known = ("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation")
        for name, value in kwargs.items():
            if name not in known:
                raise errors.one_of(name, known, subject="recompute", what="option")
            if not isinstance(value, bool):
                raise errors.type_error("recompute", f"{name} must be a bool, but got {type(value).__name__}")
            if value is not (name == "mp_comm_recompute"):
                ignored.tell("recompute", name, value, "nothing is communicated between processes")
        self.__dict__["_recompute"] = True
        self._refresh_route()

    def set_jit_config(self, jit_config) -> None:
        """Options for compiling this cell: a `JitConfig`, or its options as a dict."""
        self.__dict__["_jit_config"] = dict(getattr(jit_config, "jit_config_dict", jit_config) or {})
        self._changed()

    def set_inputs(self, *inputs, **kwargs) -> None:
        """Declare input shapes; None in a Tensor's shape stands for a size that changes from call to call."""
        from mycelia.engine.compile.dynamic_shapes import check_declaration

        self.__dict__["_inputs"] = check_declaration(self.construct, inputs, kwargs)
        cache_invalidation.changed()

    def get_inputs(self):
        """What `set_inputs` declared, or None."""
        return self._inputs

    def compile(self, *args, **kwargs) -> None:
        """Compile `construct` for these arguments now instead of at the first call."""
        from mycelia.engine.compile.jit import compile_cell

        compile_cell(self, args, kwargs)

    # ---- names and printing --------------------------------------------------------------------------------

    @property
    def cls_name(self) -> str:
        return type(self).__name__

    @property
    def param_prefix(self) -> str:
        return self._param_prefix

    def extend_repr(self) -> str:
        """What stands between the brackets of the printed form."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) < 2 and not self._cells:
            return f"{type(self).__name__}({extra})"
        for name, cell in self._cells.items():
            text = repr(cell).replace("\n", "\n  ")
            lines.append(f"({name}): {text}")
        return "\n  ".join([f"{type(self).__name__}(", *lines]) + "\n)"

    def check_names(self) -> None:
        """Raise ValueError when two Parameters have one name."""
        seen: dict[str, str] = {}
        for path, parameter in self.parameters_and_names():
            if parameter.name in seen:
                raise errors.value_error(
                    type(self).__name__,
                    f"parameters at '{seen[parameter.name]}' and '{path}' are both named '{parameter.name}'",
                )
            seen[parameter.name] = path

    def __getstate__(self):
        state = dict(self.__dict__)
        state.pop("_compiled", None)  # holds for this very object
        state.pop("_forward_passes", None)
        return state

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
