"""`.ms` models in Mycelia Serving: what the hook `mycelia_servable_loaders` gives."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from mycelia_lite.context import Context
from mycelia_lite.enums import ModelType
from mycelia_lite.model import Model


@dataclass(frozen=True)
class ServedInput:
    """An input as the server asks for it; -1 is a size that is open."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]


class ServedModel:
    """A `.ms` file as the server calls it: by one thread at a time, with arrays of the inputs' dtypes."""

    def __init__(self, path: str, options: object) -> None:
        """`options`: the server's, of which device, key, context and configuration are asked for.

        Errors: RuntimeError for a device other than the CPU and for what the runtime refuses.
        """
        device = options.device_type
        if device is not None and device.upper() != "CPU":
            raise RuntimeError(f"the device type is {device}, but .ms models run on the CPU")
        context = Context()
        if options.context is not None and options.context.thread_num:
            context.cpu.thread_num = options.context.thread_num
        self._path, self._options, self._context = path, options, context
        self.reset()
        self.inputs = tuple(
            ServedInput(t.name, t.dtype.numpy, tuple(t.shape)) for t in self._model.get_inputs()
        )

    def reset(self) -> None:
        """Load the file again: its state is as it was."""
        options = self._options
        self._model = Model()
        self._model.build_from_file(
            self._path,
            ModelType.MINDIR_LITE,
            self._context,
            os.fspath(options.config_file) if options.config_file else "",
            dec_key=options.dec_key or b"",
            dec_mode=options.dec_mode,
        )

    def __call__(self, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs for these inputs; other sizes than before, where they are open, resize the model."""
        model = self._model
        inputs = model.get_inputs()
        shapes = [list(a.shape) for a in arrays]
        if shapes != [t.shape for t in inputs]:
            model.resize(inputs, shapes)
        for tensor, array in zip(inputs, arrays):
            tensor.set_data_from_numpy(array)
        return tuple(t.get_data_to_numpy() for t in model.predict(inputs))
