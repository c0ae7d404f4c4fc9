"""Inputs and outputs in other layouts and data types than the source has, when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mycelia_lite.converter.options import Options
from mycelia_lite.enums import DataType, FmkType, Format
from mycelia_lite.format import Table

_ORDERS = {Format.NCHW: (0, 3, 1, 2), Format.NHWC: (0, 2, 3, 1)}  # to this layout, from the other one
_CHANNELS_LAST = (FmkType.TF, FmkType.TFLITE)


def run(model: Table, framework: FmkType, options: Options) -> None:
    """Change the borders of `model` in place, by Transposes and Casts behind inputs and before outputs.

    Other values than borders of rank 4 have no layout. A Cast converts numbers: no scale is applied.
    """
    _Borders(model, framework).run(options)


class _Borders:
    def __init__(self, model: Table, framework: FmkType) -> None:
        self.model = model
        self.framework = framework
        self.front: list[Table] = []
        self.back: list[Table] = []

    def run(self, options: Options) -> None:
        model = self.model
        graph = model.subGraph[0] if model.subGraph else None
        count = len(model.allTensors)
        inputs = [
            self._input(int(i), options.input_format, options.input_data_type) for i in model.inputIndex
        ]
        outputs = [
            self._output(int(i), options.output_format, options.output_data_type) for i in model.outputIndex
        ]
        model.inputIndex, model.outputIndex = inputs, outputs
        if graph is None:
            model.nodes = [*self.front, *model.nodes, *self.back]
            return
        shift, old = len(self.front), len(model.nodes)
        for other in model.subGraph:
            other.nodeIndices = [int(i) + shift for i in other.nodeIndices]
        model.nodes = [*self.front, *model.nodes, *self.back]
        graph.nodeIndices = [*range(shift), *graph.nodeIndices, *range(shift + old, len(model.nodes))]
        graph.inputIndices, graph.outputIndices = list(inputs), list(outputs)
        graph.tensorIndices = [*map(int, graph.tensorIndices), *range(count, len(model.allTensors))]

    def _change(
        self, tensor: Table, layout: Format | None, dtype: DataType | None
    ) -> tuple[Format | None, DataType | None]:
        """What of the wishes for a border it does not have yet."""
        if layout is not None and (len(tensor.dims) != 4 or layout == self._layout(tensor)):
            layout = None
        return layout, None if dtype is not None and int(tensor.dataType) == int(dtype) else dtype

    def _layout(self, tensor: Table) -> Format:
        if self.framework is FmkType.MSLITE:
            return Format.NHWC if int(tensor.format) == Format.NHWC else Format.NCHW
        return Format.NHWC if self.framework in _CHANNELS_LAST else Format.NCHW

    def _input(self, index: int, layout: Format | None, dtype: DataType | None) -> int:
        tensor = self.model.allTensors[index]
        layout, dtype = self._change(tensor, layout, dtype)
        if layout is None and dtype is None:
            return index
        made, name = tensor.copy(), tensor.name
        if layout is not None:
            made.dims = [tensor.dims[axis] for axis in _ORDERS[layout]]
            made.format = int(layout)
        if dtype is not None:
            made.dataType = int(dtype)
        border = at = self._added(made)
        tensor.name = f"{name}_as_in_the_source"
        if dtype is not None and layout is None:
            self._cast(self.front, at, index)
        elif layout is not None:
            if dtype is not None:
                middle = made.copy()
                middle.name, middle.dataType = f"{name}_cast", int(tensor.dataType)
                at = self._added(middle)
                self._cast(self.front, border, at)
            back = Format.NCHW if layout == Format.NHWC else Format.NHWC
            self._turn(self.front, at, index, _ORDERS[back])
        return border

    def _output(self, index: int, layout: Format | None, dtype: DataType | None) -> int:
        tensor = self.model.allTensors[index]
        layout, dtype = self._change(tensor, layout, dtype)
        if layout is None and dtype is None:
            return index
        made, name, at = tensor.copy(), tensor.name, index
        tensor.name = f"{name}_as_in_the_source"
        if layout is not None:
            made.dims = [tensor.dims[axis] for axis in _ORDERS[layout]]
            made.format = int(layout)
            at = self._added(made)
            self._turn(self.back, index, at, _ORDERS[layout])
        if dtype is not None:
            cast = made.copy()
            cast.dataType = int(dtype)
            made.name = f"{name}_turned"
            last = self._added(cast)
            self._cast(self.back, at, last)
            at = last
        return at

    def _turn(self, nodes: list[Table], source: int, target: int, order: Sequence[int]) -> None:
        self._node(nodes, Table("Transpose"), [source, self._constant(order)], target)

    def _cast(self, nodes: list[Table], source: int, target: int) -> None:
        number = int(self.model.allTensors[target].dataType)
        self._node(nodes, Table("Cast"), [source, self._constant(number)], target)

    def _node(self, nodes: list[Table], primitive: Table, inputs: list[int], output: int) -> None:
        name = f"{self.model.allTensors[output].name}_border"
        nodes.append(Table("CNode", name=name, primitive=primitive, inputIndex=inputs, outputIndex=[output]))

    def _constant(self, numbers: int | Sequence[int]) -> int:
        array = np.asarray(numbers, np.int32)
        name = f"border_constant_{len(self.model.allTensors)}"
        table = Table("Tensor", nodeType=0, dataType=int(DataType.INT32), dims=list(array.shape), name=name)
        table.data = array.tobytes()
        return self._added(table)

    def _added(self, table: Table) -> int:
        self.model.allTensors.append(table)
        return len(self.model.allTensors) - 1
