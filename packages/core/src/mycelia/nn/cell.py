"""`Cell`: a function with parameters and sub-cells, the base of every layer and network."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from mycelia.engine import _C, dispatch
from mycelia.engine.base import config, errors, ignored
from mycelia.engine.base.dtypes import DType, bfloat16, float16, float32
from mycelia.engine.capture import cache_invalidation
from mycelia.engine.capture.trace import traces
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell_attributes import Buffer as Buffer
from mycelia.nn.cell_attributes import CellAttributes
from mycelia.nn.cell_hooks import NO_OPTIONS, CellHooks
from mycelia.nn.cell_marks import CellMarks, MixedPrecisionType
from mycelia.nn.cell_state import CellState
from mycelia.nn.cell_tree import CellTree


class _Mode:
    """Whether graph mode is on, as a plain attribute: it is read at every call of every Cell."""

    graph = config.get("mode") == config.GRAPH_MODE
    gathers = False  # whether there are weights that Cells gather
    gathered: set[int] = set()  # these, by their identity
    detour = graph  # whether calls are more than that of `construct`
    call: Callable | None = None  # of a Cell in graph mode; imported when it is needed


def _follow(mode: int) -> None:
    _Mode.graph = mode == config.GRAPH_MODE
    _Mode.detour = _Mode.graph or _Mode.gathers


config.on_change("mode", _follow)


def gather_weights(weights: Iterable[Tensor]) -> None:
    """Cells gather these weights, which are divided among processes, while they compute (`nn/gathered.py`).
    When there are none any more calls of Cells are as quick as before.
    """
    for weight in weights:
        _Mode.gathered.add(id(weight))
        weakref.finalize(weight, _let_go, id(weight)).atexit = False
    _Mode.gathers = bool(_Mode.gathered)
    _Mode.detour = _Mode.graph or _Mode.gathers
    cache_invalidation.changed()


def _let_go(weight: int) -> None:
    _Mode.gathered.discard(weight)
    _Mode.gathers = bool(_Mode.gathered)
    _Mode.detour = _Mode.graph or _Mode.gathers


_PRECISIONS = {
    "fp16": MixedPrecisionType.FP16,
    "fp32": MixedPrecisionType.FP32,
    "bf16": MixedPrecisionType.BF16,
}


class Cell(CellAttributes, CellTree, CellState, CellHooks, CellMarks):
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
        if self._detour or _Mode.detour or traces:
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
        if _Mode.gathers:
            from mycelia.nn.gathered import around

            construct = around(self, construct)
        if "_parameter_hooks" in self.__dict__ or "_saved_tensors_hooks" in self.__dict__:
            from mycelia.nn.hooks import with_own_hooks

            construct = with_own_hooks(self, construct)
        if self._has_bprop():
            from mycelia.engine.autodiff.custom_rule import custom_vjp

            rule = self._checked_bprop if config.get("check_bprop") else self.bprop
            rule = around(self, rule) if _Mode.gathers else rule
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

    def __getstate__(self):
        state = dict(self.__dict__)
        state.pop("_compiled", None)  # holds for this very object
        state.pop("_forward_passes", None)
        return state

    def __setstate__(self, state) -> None:
        self.__dict__.update(state)
