"""Models that run, and their tensors: MindSpore Lite's Python interface over the C library."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

import numpy as np

from mycelia_lite import runtime
from mycelia_lite.context import Context
from mycelia_lite.enums import DataType, ModelType


class Tensor:
    """Named elements of one type: an input or output of a model, or made by hand.

    `shape` has -1 for a size that is open until the model is resized.

    Errors: TypeError for a `dtype` that is no DataType, RuntimeError for a shape that cannot be.
    """

    def __init__(
        self, tensor: Tensor | None = None, shape: Sequence[int] | None = None, dtype: DataType | None = None
    ):
        if tensor is not None:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"tensor must be a Tensor, but got {type(tensor).__name__}")
            shape, dtype = tensor.shape, tensor.dtype
        if not isinstance(dtype, DataType):
            raise TypeError(f"dtype must be a DataType, but got {dtype!r}")
        sizes = (ctypes.c_int64 * len(shape or ()))(*(shape or ()))
        self._handle = runtime.library().MSTensorCreate(b"", dtype, sizes, len(sizes), None, 0)
        if not self._handle:
            raise RuntimeError(runtime.library().MSGetLastError().decode())
        self._owner = None

    @classmethod
    def _of(cls, handle: int, owner: Model) -> Tensor:
        made = cls.__new__(cls)
        made._handle, made._owner = handle, owner
        return made

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._owner is None:
            runtime.library().MSTensorDestroy(ctypes.byref(runtime.Handle(self._handle)))

    @property
    def name(self) -> str:
        """Its name in the model; empty for one made by hand."""
        return runtime.library().MSTensorGetName(self._handle).decode()

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return DataType(runtime.library().MSTensorGetDataType(self._handle))

    @property
    def shape(self) -> list[int]:
        """Its sizes."""
        count = ctypes.c_size_t()
        sizes = runtime.library().MSTensorGetShape(self._handle, ctypes.byref(count))
        return [sizes[i] for i in range(count.value)]

    @property
    def element_num(self) -> int:
        """The number of elements; -1 while a size is open."""
        return -1 if -1 in self.shape else int(np.prod(self.shape, dtype=np.int64))

    @property
    def data_size(self) -> int:
        """Bytes of its elements."""
        return runtime.library().MSTensorGetDataSize(self._handle)

    def set_data_from_numpy(self, array: np.ndarray) -> None:
        """Copy the elements of an array.  Errors: TypeError, RuntimeError if its type or size do not fit."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"array must be a numpy.ndarray, but got {type(array).__name__}")
        if array.dtype != self.dtype.numpy:
            raise RuntimeError(
                f"tensor '{self.name}' has dtype {self.dtype.numpy}, but the array {array.dtype}"
            )
        if array.nbytes != self.data_size:
            raise RuntimeError(
                f"tensor '{self.name}' of shape {self.shape} has {self.data_size} bytes, but the array of "
                f"shape {list(array.shape)} has {array.nbytes}"
            )
        array = np.ascontiguousarray(array)
        ctypes.memmove(
            runtime.library().MSTensorGetMutableData(self._handle), array.ctypes.data, array.nbytes
        )

    def get_data_to_numpy(self) -> np.ndarray:
        """A copy of the elements.  Errors: RuntimeError for an output of a model that has not run."""
        if self._owner is not None:
            self._owner._check_readable(self._handle)
        made = np.empty(self.shape, self.dtype.numpy)
        if made.nbytes:
            ctypes.memmove(
                made.ctypes.data, runtime.library().MSTensorGetMutableData(self._handle), made.nbytes
            )
        return made

    def __repr__(self) -> str:
        return f"Tensor(name={self.name!r}, shape={self.shape}, dtype={self.dtype.name})"


class Model:
    """A `.ms` file that can be run."""

    def __init__(self) -> None:
        self._handle = runtime.library().MSModelCreate()
        self._inputs: list[Tensor] = []
        self._outputs: list[Tensor] = []
        self._built = self._ran = False

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            runtime.library().MSModelDestroy(ctypes.byref(runtime.Handle(self._handle)))

    def build_from_file(
        self,
        model_path: str | os.PathLike,
        model_type: ModelType = ModelType.MINDIR_LITE,
        context: Context | None = None,
        config_path: str = "",
        dec_key: bytes = b"",
        dec_mode: str = "AES-GCM",
    ) -> None:
        """Load a model and prepare it to run.

        `dec_key`: 16, 24 or 32 bytes, of an encrypted file; `dec_mode`: its cipher, AES-GCM.

        Errors: TypeError for arguments of other types, NotImplementedError for a `config_path`, RuntimeError
        with the code and the reason if the file cannot be loaded.
        """
        if not isinstance(model_path, (str, os.PathLike)):
            raise TypeError(f"model_path must be a path, but got {type(model_path).__name__}")
        if model_type is not None and not isinstance(model_type, ModelType):
            raise TypeError(f"model_type must be a ModelType, but got {type(model_type).__name__}")
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"context must be a Context, but got {type(context).__name__}")
        if not isinstance(dec_key, bytes):
            raise TypeError(f"dec_key must be bytes, but got {type(dec_key).__name__}")
        if not isinstance(dec_mode, str):
            raise TypeError(f"dec_mode must be a str, but got {type(dec_mode).__name__}")
        if config_path:
            raise NotImplementedError("config_path: the runtime reads no configuration file yet")
        library = runtime.library()
        native = runtime.Handle(library.MSContextCreate())
        try:
            runtime.check(library.MSContextSetThreadNum(native, (context or Context()).cpu.thread_num))
            kind = ModelType.MINDIR_LITE if model_type is None else model_type
            what = (self._handle, os.fsencode(model_path), kind, native)
            if dec_key:
                runtime.check(
                    library.MSModelBuildFromEncryptedFile(*what, dec_key, len(dec_key), dec_mode.encode())
                )
            else:
                runtime.check(library.MSModelBuildFromFile(*what))
        finally:
            library.MSContextDestroy(ctypes.byref(native))
        self._inputs = [Tensor._of(h, self) for h in library.MSModelGetInputs(self._handle).list()]
        self._outputs = [Tensor._of(h, self) for h in library.MSModelGetOutputs(self._handle).list()]
        self._built = True

    def get_inputs(self) -> list[Tensor]:
        """The inputs, which belong to the model: what is set in them is what `predict` reads."""
        return list(self._inputs)

    def get_outputs(self) -> list[Tensor]:
        """The outputs, which belong to the model; they have data once it has run."""
        return list(self._outputs)

    def resize(self, inputs: Sequence[Tensor], dims: Sequence[Sequence[int]]) -> None:
        """Prepare for other shapes `dims` of the inputs.

        Errors: RuntimeError if the model cannot have them; then it is as it was.
        """
        shapes = (runtime.ShapeInfo * len(dims))()
        for info, sizes in zip(shapes, dims):
            info.count = len(sizes)
            info.sizes[: min(len(sizes), 32)] = list(sizes)[:32]
        array = runtime.TensorArray.of([t._handle for t in inputs])
        runtime.check(runtime.library().MSModelResize(self._handle, array, shapes, len(dims)))
        self._ran = False

    def predict(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | None = None) -> list[Tensor]:
        """Run the model on `inputs`, its own ones or others like them; returns its outputs.

        `outputs`: tensors that get copies of them.

        Errors: TypeError, RuntimeError for inputs that do not fit and for what a kernel refuses.
        """
        for i, t in enumerate(inputs):
            if not isinstance(t, Tensor):
                raise TypeError(f"inputs[{i}] must be a Tensor, but got {type(t).__name__}")
        array = runtime.TensorArray.of([t._handle for t in inputs])
        runtime.check(runtime.library().MSModelPredict(self._handle, array, None, None, None))
        self._ran = True
        for own, given in zip(self._outputs, outputs or ()):
            given.set_data_from_numpy(own.get_data_to_numpy())
        return self.get_outputs()

    def _check_readable(self, handle: int) -> None:
        if not self._ran and any(t._handle == handle for t in self._outputs):
            raise RuntimeError(
                "the model has not run since it was built or resized: its outputs have no data"
            )
