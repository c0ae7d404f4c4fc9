"""One model for many threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from mycelia_lite import runtime
from mycelia_lite.context import Context
from mycelia_lite.enums import ModelType
from mycelia_lite.tensor import Tensor, handles


class ModelParallelRunner:
    """A model with several workers, which share its weights: `predict` may be called by any thread."""

    def __init__(self) -> None:
        self._handle = runtime.library().MSRunnerCreate()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            runtime.library().MSRunnerDestroy(ctypes.byref(runtime.Handle(self._handle)))

    def build_from_file(
        self,
        model_path: str | os.PathLike,
        model_type: ModelType = ModelType.MINDIR_LITE,
        context: Context | None = None,
    ) -> None:
        """Load a model; `context.parallel` says how many workers it has and their configuration.

        Errors: TypeError, RuntimeError if the file or the configuration cannot be loaded.
        """
        if not isinstance(model_path, (str, os.PathLike)):
            raise TypeError(f"model_path must be a path, but got {type(model_path).__name__}")
        if model_type is not None and not isinstance(model_type, ModelType):
            raise TypeError(f"model_type must be a ModelType, but got {type(model_type).__name__}")
        context = context or Context()
        for section, keys in context.parallel.sections().items():
            for key, value in keys.items():
                texts = [text.encode() for text in (section, key, value)]
                runtime.check(runtime.library().MSRunnerUpdateConfig(self._handle, *texts))
        with context.native() as native:
            runtime.check(
                runtime.library().MSRunnerInit(
                    self._handle, os.fsencode(model_path), native, context.parallel.workers_num
                )
            )

    def get_inputs(self) -> list[Tensor]:
        """The inputs' names, types and shapes, -1 for open sizes; they have no elements.

        What is given to `predict` is a `Tensor` of the caller's own, such as `Tensor(described)`.
        """
        return [Tensor._of(h, self) for h in runtime.library().MSRunnerGetInputs(self._handle).list()]

    def get_outputs(self) -> list[Tensor]:
        """The outputs' names, types and shapes; they have no elements."""
        return [Tensor._of(h, self) for h in runtime.library().MSRunnerGetOutputs(self._handle).list()]

    def predict(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run on a worker that is free, or wait for one; the outputs belong to the caller.

        Sizes that the file leaves open may differ from call to call.

        Errors: TypeError, RuntimeError for inputs that do not fit and for what a kernel refuses.
        """
        library, array = runtime.library(), handles(inputs, "inputs")
        count = ctypes.c_size_t(library.MSRunnerGetOutputs(self._handle).count)
        made = (runtime.Handle * max(count.value, 1))()
        runtime.check(library.MSRunnerPredict(self._handle, array, made, ctypes.byref(count)))
        return [Tensor._of(made[i], None) for i in range(count.value)]
