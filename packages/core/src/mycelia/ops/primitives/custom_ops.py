"""Ops of the user's: `Custom` with functions in Python, in shared libraries, or in the hybrid language."""

from __future__ import annotations

import ctypes
import inspect
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.engine.autodiff.custom_rule import custom_vjp
from mycelia.engine.base import dtypes, errors, ignored
from mycelia.engine.ops.control_flow.python_call import call_python
from mycelia.engine.tensors.tensor import Tensor
from mycelia.ops.primitive import Primitive
from mycelia.ops.primitives.define import register

_KINDS = ("hybrid", "akg", "tbe", "aicpu", "aot", "pyfunc")
_ELSEWHERE = {"akg": "the compiler AKG", "tbe": "an Ascend device", "aicpu": "an Ascend device"}

# ---- functions in shared libraries -------------------------------------------------------------------------


_Sizes = ctypes.POINTER(ctypes.c_int64)


def _library_function(place: str, outputs: tuple) -> Callable:
    """The C function `file.so:name` as a function on arrays.

    Its form is ``int f(int count, void **data, int *ranks, int64_t **shapes, const char **dtypes,
    void *stream, void *extra)`` with the inputs before the outputs; 0 is success.
    """
    path, colon, name = place.rpartition(":")
    if not colon:
        raise errors.value_error("Custom", f"func must be 'file.so:function' for aot, but got {place!r}")
    if not os.path.exists(path):
        raise errors.runtime_error("Custom", f"there is no library file {path!r}")
    try:
        function = getattr(ctypes.CDLL(os.path.abspath(path)), name)
    except (OSError, AttributeError) as error:
        raise errors.runtime_error("Custom", f"{name!r} of {path!r} cannot be loaded: {error}") from None

    def call(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        results = [np.zeros(shape, dtype.np) for dtype, shape in outputs]
        arrays = [*(np.ascontiguousarray(i) for i in inputs), *results]
        count = len(arrays)
        shapes = [(ctypes.c_int64 * max(a.ndim, 1))(*a.shape) for a in arrays]
        code = function(
            ctypes.c_int(count),
            (ctypes.c_void_p * count)(*(a.ctypes.data for a in arrays)),
            (ctypes.c_int * count)(*(a.ndim for a in arrays)),
            (_Sizes * count)(*(ctypes.cast(s, _Sizes) for s in shapes)),
            (ctypes.c_char_p * count)(*(a.dtype.name.encode() for a in arrays)),
            None,
            None,
        )
        if code != 0:
            raise RuntimeError(f"the function {name} of {path} returned {code}")
        return tuple(results)

    return call


# ---- Custom ----------------------------------------------------------------------------------------------


@register
class Custom(Primitive):
    """An op made of a function of the user's.

    `func_type` "pyfunc": `func` gets and returns NumPy arrays; "aot": `func` is "library.so:function";
    "hybrid": `func` is decorated by `ops.kernel`. `out_shape`, `out_dtype`: of the results, or functions of
    the inputs' shapes and dtypes. `bprop`: ``(*inputs, out, dout) -> gradients``.
    """

    @ignored.arguments(reg_info="dtypes and formats are those of the inputs")
    def __init__(
        self, func: Any, out_shape: Any = None, out_dtype: Any = None, func_type: str = "pyfunc",
        bprop: Callable | None = None, reg_info: Any = None,
    ):  # fmt: skip
        super().__init__("Custom")
        if func_type not in _KINDS:
            raise errors.one_of(func_type, _KINDS, subject="Custom", what="the argument 'func_type'")
        if func_type == "aot" and not isinstance(func, str):
            raise errors.type_error("Custom", f"'func' must be a str for aot, but got {type(func).__name__}")
        if func_type == "hybrid" and not getattr(func, "hybrid_kernel", False):
            raise errors.type_error("Custom", "'func' must be a function decorated by kernel for hybrid")
        if func_type == "pyfunc":
            for name, value in (("out_shape", out_shape), ("out_dtype", out_dtype)):
                if value is None:
                    raise errors.type_error("Custom", f"'{name}' must be given for pyfunc, but got None")
        self.func, self.func_type, self.bprop = func, func_type, bprop
        self.out_shape, self.out_dtype = out_shape, out_dtype
        self.add_prim_attr("func_name", func.rpartition(":")[2] if isinstance(func, str) else func.__name__)
        self.add_prim_attr("func_type", func_type)

    def get_bprop(self) -> Callable | None:
        """The gradient function that was given."""
        return self.bprop

    def __call__(self, *inputs: Any) -> Any:
        if self.func_type in _ELSEWHERE:
            raise errors.runtime_error(
                "Custom", f"functions of type {self.func_type!r} need {_ELSEWHERE[self.func_type]}"
            )
        if self.bprop is None:
            return self._run(*inputs)
        return custom_vjp(self._run, self.bprop)(*inputs)

    def _run(self, *inputs: Any) -> Any:
        tensors = tuple(i if isinstance(i, Tensor) else Tensor(i) for i in inputs)
        results, several = self._results(tensors)
        function = self.func if self.func_type != "aot" else _library_function(self.func, results)
        found = call_python(function, tensors, results)
        return found if several else found[0]

    def _results(self, inputs: tuple) -> tuple[tuple, bool]:
        """Dtype and shape of each result, and whether there are several."""
        shapes = self.out_shape
        if shapes is None and self.func_type == "hybrid":  # its own run tells
            found = self.func(*(i.asnumpy() for i in inputs))
            many = isinstance(found, tuple)
            return tuple((dtypes.from_numpy(f.dtype), f.shape) for f in (found if many else (found,))), many
        if inspect.isfunction(shapes) or inspect.ismethod(shapes):
            shapes = shapes(*(list(i.shape) for i in inputs))
        kinds = self.out_dtype
        if inspect.isfunction(kinds) or inspect.ismethod(kinds):
            kinds = kinds(*(i.dtype for i in inputs))
        several = bool(len(shapes)) and isinstance(shapes[0], (tuple, list))
        shapes = shapes if several else (shapes,)
        kinds = kinds if isinstance(kinds, (tuple, list)) else (kinds,) * len(shapes)
        if len(kinds) != len(shapes):
            raise errors.value_error(
                "Custom", f"there are {len(shapes)} out_shapes but {len(kinds)} out_dtypes"
            )
        return tuple((dtypes.as_dtype(k), tuple(s)) for k, s in zip(kinds, shapes)), several


@register
class CustomOpBuilder:
    """Sources of ops in C++ that are built against MindSpore's own headers, of which there are none here.

    What is given can be asked for; `build` and `load` raise RuntimeError.
    """

    @ignored.arguments(kwargs="nothing is built")
    def __init__(
        self, name: str, sources: Any, backend: str | None = None, include_paths: list | None = None,
        cflags: str | None = None, ldflags: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        if backend not in (None, "CPU", "Ascend"):
            raise errors.one_of(backend, ("CPU", "Ascend"), subject="CustomOpBuilder", what="'backend'")
        self.name, self.backend = name, backend
        self.source = [sources] if isinstance(sources, str) else list(sources)
        self.include_paths, self.cflags, self.ldflags = list(include_paths or []), cflags, ldflags

    def get_sources(self) -> list[str]:
        """The source files."""
        return self.source

    def get_include_paths(self) -> list[str]:
        """Folders of headers."""
        return self.include_paths

    def get_cflags(self) -> list[str]:
        """Options of the compiler."""
        return self.cflags.split() if self.cflags else []

    def get_ldflags(self) -> list[str]:
        """Options of the linker."""
        return self.ldflags.split() if self.ldflags else []

    def build(self) -> str:
        """Build the library."""
        raise errors.runtime_error(
            "CustomOpBuilder", "extensions against MindSpore's C++ headers cannot be built here",
            hint="ops.Custom with func_type 'aot' loads a C function from a shared library",
        )  # fmt: skip

    def load(self) -> Any:
        """Build and import the library."""
        return self.build()
