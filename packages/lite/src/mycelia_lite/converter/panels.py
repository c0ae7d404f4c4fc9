"""Weights in the order in which kernels read them, so that nothing is packed when the model is loaded.

The columns of a product's or a convolution's weights lie in panels of 16, as for every instruction set; a
Custom node `panels` makes the weights of them. The runtime uses panels where they lie in the file; another
one, which does not know the node, refuses the model.
"""

from __future__ import annotations

import numpy as np

from mycelia_lite.converter.rules.customs import custom
from mycelia_lite.enums import DataType
from mycelia_lite.format import Table
from mycelia_lite.quant.readers import Homes, Uses, borders, readers

_PANEL = 16
_FEWEST = 1 << 12  # bytes of weights that are worth a node
_MOST_FILL = (
    1.16  # by which zeros may make them longer: beyond it kernels on the weights as they are may be better
)
_LEAST_INPUTS = 8  # of a convolution: with fewer it may be computed with the channels first
_CONSTANT, _VARIABLE = 0, 2  # Tensor.nodeType


def pack(model: Table) -> int:
    """Put weights of float32 into panels, in place; how many."""
    used, edge, homes = readers(model), borders(model), Homes(model)
    names = {node.name for node in model.nodes}
    made: list[tuple[Table, Uses]] = []
    for index in range(len(model.allTensors)):
        uses = used.get(index, [])
        axis = _axis(model.allTensors[index], uses)
        if axis is None or index in edge or not homes.are_one(uses):
            continue
        name = base = f"{uses[0][0].name}/panels"
        while name in names:
            name = f"{base}_{len(names)}"
        names.add(name)
        packed = _packed(model.allTensors[index], axis, name)
        node = Table("CNode", name=name, primitive=custom("panels", axis=axis))
        node.inputIndex, node.outputIndex = [len(model.allTensors)], [index]
        model.allTensors.append(packed)
        made.append((node, uses))
    homes.prepend(made)
    return len(made)


def _axis(tensor: Table, uses: list[tuple[Table, int]]) -> int | None:
    """The axis of the columns if all that read the weights can read panels of them, else None."""
    is_plain = tensor.dataType == int(DataType.FLOAT32) and not len(tensor.quantParams)
    if not is_plain or len(tensor.data) < _FEWEST or not uses:
        return None
    shape = [int(n) for n in tensor.dims]
    axes = {_axis_of(node.primitive, shape) if place == 1 else None for node, place in uses}
    axis = axes.pop() if len(axes) == 1 else None
    if axis is None or _padded(shape[axis]) > _MOST_FILL * shape[axis]:
        return None
    return axis


def _axis_of(operator: Table, shape: list[int]) -> int | None:
    if operator.kind == "Conv2DFusion" and len(shape) == 4:
        return 0 if operator.group == 1 and shape[3] >= _LEAST_INPUTS else None
    if operator.kind == "FullConnection" and len(shape) == 2:
        return 0
    if operator.kind == "MatMulFusion" and len(shape) == 2 and not operator.transpose_a:
        return 0 if operator.transpose_b else 1
    return None


def _padded(n: int) -> int:
    return -(-n // _PANEL) * _PANEL


def _packed(tensor: Table, axis: int, name: str) -> Table:
    """A constant with the panels of the weights, which are a result from now on."""
    shape = [int(n) for n in tensor.dims]
    matrix = np.frombuffer(tensor.data, np.float32).reshape(shape)
    matrix = matrix.reshape(shape[0], -1).T if axis == 0 else matrix  # [depth, columns]
    depth, columns = matrix.shape
    panels = np.zeros((_padded(columns) // _PANEL, depth, _PANEL), np.float32)
    for i, panel in enumerate(panels):
        part = matrix[:, i * _PANEL : (i + 1) * _PANEL]
        panel[:, : part.shape[1]] = part
    tensor.data, tensor.nodeType = b"", _VARIABLE
    return Table(
        "Tensor", nodeType=_CONSTANT, dataType=int(DataType.FLOAT32), dims=list(panels.shape),
        format=tensor.format, name=f"{name}:data", data=memoryview(panels).cast("B"),
    )  # fmt: skip
