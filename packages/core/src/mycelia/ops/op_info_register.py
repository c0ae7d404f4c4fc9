"""Descriptions of kernels, as `CustomRegOp` and its relatives collect them: plain dicts of names and formats.

Nothing is registered with a device: the description is kept with the function that it is attached to.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors

_FORMATS = {
    "None": "", "Default": "DefaultFormat", "5HD": "NC1HWC0", "FracZ": "FRACTAL_Z", "FracNZ": "FRACTAL_NZ",
    "C1HWNCoC0": "C1HWNCoC0", "NCHW": "NCHW", "NHWC": "NHWC", "HWCN": "HWCN", "NDHWC": "NDHWC",
    "NCDHW": "NCDHW", "DHWCN": "DHWCN", "NDC1HWC0": "NDC1HWC0", "FRACTAL_Z_3D": "FRACTAL_Z_3D",
    "FracZNLSTM": "FRACTAL_ZN_LSTM", "FracZNRNN": "FRACTAL_ZN_RNN", "ND_RNNBIAS": "ND_RNN_BIAS",
    "ChannelLast": "ChannelLast",
}  # fmt: skip
_TYPES = {
    "None": "", "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8",
    "U16": "uint16", "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64",
    "BF16": "bfloat16", "C64": "complex64", "C128": "complex128",
}  # fmt: skip


class DataType:
    """Pairs of dtype and memory format: `F16_Default`, `I32_5HD`, `BOOL_None`, ...; also lists of them."""


for _short, _dtype in _TYPES.items():
    for _suffix, _format in _FORMATS.items():
        setattr(DataType, f"{_short}_{_suffix}", (_dtype, _format))
    setattr(DataType, f"{_short}_Default_List", (_dtype, "DefaultFormat", "list"))
    setattr(DataType, f"{_short}_Default_Tuple", (_dtype, "DefaultFormat", "tuple"))


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or kind is int and isinstance(value, bool):
        raise errors.type_error(f"{value} value must be {kind.__name__}")
    return value


class RegOp:
    """What all descriptions have: inputs, outputs, attributes and the dtypes that go together."""

    def __init__(self, op_name: str):
        if not isinstance(op_name, str):
            raise errors.value_error("op name value must be string")
        self.op_name = op_name
        self.inputs: list[dict] = []
        self.outputs: list[dict] = []
        self.attr_: list[dict] = []
        self.fusion_type_ = ""
        self.dtype_format_: list[tuple] = []

    def _entry(self, kept: list, fields: dict[str, tuple[Any, type]], more: dict[str, Any]) -> RegOp:
        """Append an entry: the fields that are given, each of its type, and further ones."""
        entry = {key: _checked(value, kind) for key, (value, kind) in fields.items() if value is not None}
        kept.append({**entry, **more})
        return self

    def fusion_type(self, fusion_type: str) -> RegOp:
        """How the kernel may be joined with others: "ELEMWISE", "OPAQUE", ..."""
        self.fusion_type_ = _checked(fusion_type, str)
        return self

    def dtype_format(self, *args: tuple) -> RegOp:
        """One pair of dtype and format for each input and output."""
        expected = len(self.inputs) + len(self.outputs)
        if len(args) != expected:
            raise errors.value_error(
                f"input size add output size must be equal to dtype format size: {expected}, not {len(args)}"
            )
        for pair in args:
            if not isinstance(pair, tuple) or len(pair) not in (1, 2, 3):
                raise errors.value_error(f"dtype and format must be a tuple of text, but got {pair!r}")
            for part in pair:
                _checked(part, str)
        self.dtype_format_.append(args)
        return self

    def get_op_info(self) -> dict[str, Any]:
        """The description as a dict."""
        return {
            "op_name": self.op_name, "inputs": self.inputs, "outputs": self.outputs, "attr": self.attr_,
            "fusion_type": self.fusion_type_, "dtype_format": self.dtype_format_, **self._more(),
        }  # fmt: skip

    def _more(self) -> dict[str, Any]:
        return {}


class CpuRegOp(RegOp):
    """Description of a kernel for CPU."""

    imply_type = "CPU"

    def input(self, index: Any = None, name: Any = None, param_type: Any = None, **kwargs: Any) -> RegOp:
        """Add an input."""
        fields = {"index": (index, int), "name": (name, str), "paramType": (param_type, str)}
        return self._entry(self.inputs, fields, kwargs)

    def output(self, index: Any = None, name: Any = None, param_type: Any = None, **kwargs: Any) -> RegOp:
        """Add an output."""
        fields = {"index": (index, int), "name": (name, str), "paramType": (param_type, str)}
        return self._entry(self.outputs, fields, kwargs)

    def attr(self, name: Any = None, value_type: Any = None, value: Any = None, **kwargs: Any) -> RegOp:
        """Add an attribute."""
        fields = {"name": (name, str), "type": (value_type, str), "value": (value, str)}
        return self._entry(self.attr_, fields, kwargs)

    def _more(self) -> dict[str, Any]:
        return {"imply_type": self.imply_type}


class AiCPURegOp(CpuRegOp):
    """Description of a kernel for the processor of an Ascend device."""

    imply_type = "AiCPU"


class AkgRegOp(RegOp):
    """Description of a kernel that AKG generates."""

    processor = ""

    def input(self, index: Any = None, name: Any = None, param_type: Any = None, **kwargs: Any) -> RegOp:
        """Add an input."""
        fields = {"index": (index, int), "name": (name, str), "paramType": (param_type, str)}
        return self._entry(self.inputs, fields, kwargs)

    def output(self, index: Any = None, name: Any = None, **kwargs: Any) -> RegOp:
        """Add an output."""
        return self._entry(self.outputs, {"index": (index, int), "name": (name, str)}, kwargs)

    def attr(self, name: Any = None, param_type: Any = None, value_type: Any = None, **kwargs: Any) -> RegOp:
        """Add an attribute."""
        fields = {"name": (name, str), "paramType": (param_type, str), "type": (value_type, str)}
        return self._entry(self.attr_, fields, kwargs)

    def _more(self) -> dict[str, Any]:
        return {"imply_type": "AKG", "processor": self.processor}


class AkgGpuRegOp(AkgRegOp):
    """Description of a kernel that AKG generates for a GPU."""

    processor = "CUDA"


class AkgAscendRegOp(AkgRegOp):
    """Description of a kernel that AKG generates for Ascend."""

    processor = "AiCore"


class AkgCpuRegOp(AkgRegOp):
    """Description of a kernel that AKG generates for a CPU."""

    processor = "CPU"


# method of TBERegOp -> key in the description, type, what the description says when it is not called,
# default of the method's argument
_TBE = {
    "async_flag": ("async_flag", bool, False, False),
    "binfile_name": ("binfile", str, "", ...),
    "compute_cost": ("compute_cost", int, 10, 10),
    "kernel_name": ("kernel", str, "", ...),
    "partial_flag": ("partial_flag", bool, False, True),
    "reshape_type": ("reshape_type", str, "", ...),
    "dynamic_rank_support": ("dynamicRankSupport", bool, False, ...),
    "dynamic_shape": ("dynamicShapeSupport", bool, False, False),
    "dynamic_compile_static": ("dynamicCompileStatic", bool, False, False),
    "need_check_supported": ("needCheckSupport", bool, False, False),
    "is_dynamic_format": ("dynamicFormat", bool, False, False),
    "op_pattern": ("op_pattern", str, "", None),
    "real_input_index": ("real_input_index", list, [], ...),
    "input_to_attr_index": ("input_to_attr_index", list, [], ...),
    "unknown_shape_formats": ("unknown_shape_formats", list, [], ...),
}


class TBERegOp(RegOp):
    """Description of a kernel in the tensor language of Ascend; `kernel_name` and so on set one fact each."""

    def __init__(self, op_name: str):
        super().__init__(op_name)
        self._facts = {key: value for key, _, value, _ in _TBE.values()}

    def input(
        self, index: Any = None, name: Any = None, need_compile: Any = None, param_type: Any = None,
        shape: Any = None, value_depend: Any = None, **kwargs: Any,
    ) -> RegOp:  # fmt: skip
        """Add an input."""
        fields = {
            "index": (index, int), "name": (name, str), "need_compile": (need_compile, bool),
            "paramType": (param_type, str), "shape": (shape, str), "valueDepend": (value_depend, str),
        }  # fmt: skip
        return self._entry(self.inputs, fields, kwargs)

    def output(
        self, index: Any = None, name: Any = None, need_compile: Any = None, param_type: Any = None,
        shape: Any = None, **kwargs: Any,
    ) -> RegOp:  # fmt: skip
        """Add an output."""
        fields = {
            "index": (index, int), "name": (name, str), "need_compile": (need_compile, bool),
            "paramType": (param_type, str), "shape": (shape, str),
        }  # fmt: skip
        return self._entry(self.outputs, fields, kwargs)

    def attr(
        self, name: Any = None, param_type: Any = None, value_type: Any = None, value: Any = None,
        default_value: Any = None, **kwargs: Any,
    ) -> RegOp:  # fmt: skip
        """Add an attribute."""
        fields = {
            "name": (name, str), "paramType": (param_type, str), "type": (value_type, str),
            "value": (value, str), "defaultValue": (default_value, str),
        }  # fmt: skip
        return self._entry(self.attr_, fields, kwargs)

    def _more(self) -> dict[str, Any]:
        return {"imply_type": "TBE", **self._facts}


def _setter(name: str, key: str, kind: type, default: Any) -> Callable:
    parameter = inspect.Parameter(
        "pattern" if name == "op_pattern" else name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if default is ... else default,
    )
    signature = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), parameter])

    def put(self: TBERegOp, *args: Any, **kwargs: Any) -> TBERegOp:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        value = given.arguments[parameter.name]
        self._facts[key] = value if value is None else _checked(value, kind)
        return self

    put.__name__, put.__qualname__ = name, f"TBERegOp.{name}"
    put.__doc__ = f"Set `{key}`, a {kind.__name__}, of the description."
    put.__signature__ = signature
    return put


for _name, (_key, _kind, _, _default) in _TBE.items():
    setattr(TBERegOp, _name, _setter(_name, _key, _kind, _default))


class CustomRegOp(RegOp):
    """Description of a kernel of a user for `ops.Custom`."""

    def __init__(self, op_name: str = "Custom"):
        super().__init__(op_name)
        self.target_ = "UnKnown"

    def input(
        self, index: Any = None, name: Any = None, param_type: Any = "required", **kwargs: Any
    ) -> RegOp:
        """Add an input; `param_type` is "required", "optional" or "dynamic"."""
        fields = {"index": (index, int), "name": (name, str), "paramType": (param_type, str)}
        return self._entry(self.inputs, fields, kwargs)

    def output(
        self, index: Any = None, name: Any = None, param_type: Any = "required", **kwargs: Any
    ) -> RegOp:
        """Add an output; `param_type` is "required", "optional" or "dynamic"."""
        fields = {"index": (index, int), "name": (name, str), "paramType": (param_type, str)}
        return self._entry(self.outputs, fields, kwargs)

    def dtype_format(self, *args: tuple) -> RegOp:
        """One pair of dtype and format for each input and output."""
        return super().dtype_format(*args)

    def attr(
        self, name: Any = None, param_type: Any = None, value_type: Any = None, default_value: Any = None,
        **kwargs: Any,
    ) -> RegOp:  # fmt: skip
        """Add an attribute."""
        fields = {
            "name": (name, str), "paramType": (param_type, str), "type": (value_type, str),
            "defaultValue": (default_value, str),
        }  # fmt: skip
        return self._entry(self.attr_, fields, kwargs)

    def target(self, target: str | None = None) -> RegOp:
        """The device: "Ascend", "GPU" or "CPU"."""
        if target is not None:
            self.target_ = _checked(target, str)
        return self

    def get_op_info(self) -> dict[str, Any]:
        """The description as a dict."""
        return super().get_op_info()

    def _more(self) -> dict[str, Any]:
        return {"target": self.target_}


def op_info_register(op_info: Any) -> Callable:
    """Decorator that keeps the description of a kernel, a dict or its text in JSON, with a function."""

    def register(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        wrapped.op_info = op_info
        return wrapped

    return register


def custom_info_register(*reg_info: Any) -> Callable:
    """Decorator that keeps descriptions with the function of an `ops.Custom`."""

    def register(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        wrapped.reg_info = reg_info
        return wrapped

    return register


__all__ = [
    "AiCPURegOp", "AkgAscendRegOp", "AkgCpuRegOp", "AkgGpuRegOp", "CpuRegOp", "CustomRegOp", "DataType",
    "TBERegOp", "custom_info_register", "op_info_register",
]  # fmt: skip
