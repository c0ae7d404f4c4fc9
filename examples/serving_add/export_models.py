"""Exports an addition twice: of two 2x2 matrices, and of batches of two rows of three numbers."""

from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import nn, ops

HERE = Path(__file__).parent


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.add = ops.Add()

    def construct(self, x_, y_):
        return self.add(x_, y_)


def export_models(directory: Path = HERE) -> None:
    """Writes version 1 of the servables in `directory`."""
    for servable, shape in (("add", (2, 2)), ("add_batch", (2, 3))):
        x = ms.Tensor(np.ones(shape, np.float32))
        file = directory / servable / "1" / "tensor_add.mindir"
        ms.export(Net(), x, x, file_name=str(file), file_format="MINDIR")
        print(f"wrote {file}")


if __name__ == "__main__":
    export_models()
