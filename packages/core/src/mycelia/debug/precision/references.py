"""Dumps of trusted runs outside of Mycelia: arrays of NumPy, layers of PyTorch, values of ONNX Runtime.

They have the folders of a data dump (`docs/debugging.md`), outputs alone, so that `vc` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from mycelia.debug.dump import files
from mycelia.engine.base import errors

NET = "Reference"
#: Types of layers of PyTorch and of operators of ONNX -> MindSpore's, for matching by order.
TYPES = {
    "Conv2d": "Conv2D", "Conv": "Conv2D", "Linear": "Dense", "Gemm": "Dense", "Relu": "ReLU",
    "BatchNorm2d": "BatchNorm", "BatchNormalization": "BatchNorm", "MaxPool2d": "MaxPool",
    "AvgPool2d": "AvgPool", "AveragePool": "AvgPool", "Flatten": "Reshape",
}  # fmt: skip


class ReferenceDump:
    """Takes the tensors of a trusted run, in order of execution, into `folder`."""

    def __init__(self, folder: str | os.PathLike) -> None:
        self.root = os.path.join(folder, "rank_0")
        self.iteration = 0

    def next_step(self) -> None:
        """What is added from now on belongs to the next iteration."""
        self.iteration += 1

    def add(self, name: str, array: Any, kind: str = "Tensor", slot: int = 0) -> None:
        """One output: the operator's `name`, with scopes by ``/`` or ``.``, and its type `kind`.

        `array`: whatever NumPy makes an array of numbers of.
        Errors: ValueError for a name without a letter, or what is no array of numbers; OSError.
        """
        found = np.asarray(array)
        if found.dtype.kind not in "fciub":
            raise errors.value_error(
                "ReferenceDump.add", f"array must hold numbers, but {name} has {found.dtype}"
            )
        if not isinstance(name, str) or not any(c.isalnum() for c in name) or not kind.isalnum():
            raise errors.value_error(
                "ReferenceDump.add", f"name and kind must be words, but are {name!r}, {kind!r}"
            )
        folder = os.path.join(self.root, NET, "0", str(self.iteration))
        os.makedirs(folder, exist_ok=True)
        dtype = str(found.dtype).capitalize()
        file = files.file_name(kind, name, files.CLOCK.stamp(), "output", slot, dtype)
        files.write_array(folder, file, found)

    @contextmanager
    def torch(self, module: Any) -> Iterator[None]:
        """In this block the outputs of all innermost modules of a `torch.nn.Module` are added."""
        with ExitStack() as stack:
            for name, layer in module.named_modules():
                if not any(True for _ in layer.children()):
                    handle = layer.register_forward_hook(self._hook(name or type(module).__name__))
                    stack.callback(handle.remove)
            yield

    def _hook(self, name: str) -> Any:
        def seen(layer: Any, inputs: Any, output: Any) -> None:
            kind = type(layer).__name__
            for slot, tensor in enumerate(output if isinstance(output, (tuple, list)) else [output]):
                if hasattr(tensor, "detach"):
                    self.add(name, tensor.detach().cpu().float().numpy(), TYPES.get(kind, kind), slot)

        return seen

    def onnxruntime(
        self, session: Any, feeds: dict[str, Any], names: Sequence[str] | None = None
    ) -> list[Any]:
        """Run an `onnxruntime.InferenceSession` on `feeds` and add its outputs, or those called `names`.

        ONNX Runtime tells no value that is no output of the model: add inner ones to the graph's outputs.
        """
        wanted = list(names) if names is not None else [o.name for o in session.get_outputs()]
        found = session.run(wanted, feeds)
        for name, array in zip(wanted, found):
            self.add(name, array)
        return found
