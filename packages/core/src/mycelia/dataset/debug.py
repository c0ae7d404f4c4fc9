"""Looking into a pipeline: hooks between the operations of `map`, active in debug mode."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class DebugHook(ABC):
    """Base of hooks: `compute` gets what the operation before gave and returns it.

    `prev_op_name` is the name of that operation. A hook in a list of operations is passed over unless
    `dataset.config.set_debug_mode(True)` was called; hooks given to that call follow every operation.
    """

    def __init__(self, prev_op_name: str | None = None):
        self.prev_op_name = prev_op_name

    def __call__(self, *args):
        return self.compute(*args)

    def set_previous_op_name(self, prev_op_name: str) -> None:
        """The operation that the hook follows."""
        self.prev_op_name = prev_op_name

    @abstractmethod
    def compute(self, *args):
        """Look at the values and return them."""


class PrintMetaDataHook(DebugHook):
    """Prints shape and dtype of each value."""

    def compute(self, *args):
        for i, value in enumerate(args):
            array = np.asarray(value)
            print(f"[{self.prev_op_name}] column {i}: shape {array.shape}, dtype {array.dtype}", flush=True)
        return args
