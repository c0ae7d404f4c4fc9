"""Fusions of a written model, by the names of MindSpore Lite's passes, by which each can be switched off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

import numpy as np

from mycelia_lite.enums import DataType
from mycelia_lite.format import Table

_ALONE = "NO_ACTIVATION"
_INSIDE = ("RELU", "RELU6")  # activations that operators of the original have as an attribute


class _Uses:
    """Which nodes make and read each tensor."""

    def __init__(self, model: Table) -> None:
        self.maker = {o: node for node in model.nodes for o in node.outputIndex}
        self.readers = Counter(int(i) for node in model.nodes for i in node.inputIndex)
        self.readers.update(int(i) for i in model.outputIndex)

    def only_maker(self, tensor: int) -> Table | None:
        """The node that makes a tensor which one node alone reads."""
        return self.maker.get(tensor) if self.readers[tensor] == 1 else None


def _is_constant(model: Table, tensor: int) -> bool:
    return len(model.allTensors[tensor].data) > 0


def _takes_activation(model: Table, kinds: Collection[str]) -> int:
    """An activation behind an operator of these kinds becomes its attribute."""
    uses, gone = _Uses(model), []
    for node in model.nodes:
        inner = node.primitive
        if inner.kind != "Activation" or inner.activation_type.name not in _INSIDE:
            continue
        maker = uses.only_maker(node.inputIndex[0])
        target = maker and maker.primitive
        if target is None or target.kind not in kinds or target.activation_type.name != _ALONE:
            continue
        target.activation_type = inner.activation_type
        maker.outputIndex = list(node.outputIndex)
        maker.name = node.name
        gone.append(id(node))
    model.nodes = [node for node in model.nodes if id(node) not in gone]
    return len(gone)


def _takes_bias(model: Table, kinds: Collection[str]) -> int:
    """A constant bias added behind an operator of these kinds becomes its third input."""
    uses, gone = _Uses(model), []
    for node in model.nodes:
        inner = node.primitive
        if inner.kind != "BiasAdd":
            continue
        data, bias = node.inputIndex
        maker = uses.only_maker(data)
        target = maker and maker.primitive
        if (
            target is None
            or target.kind not in kinds
            or len(maker.inputIndex) != 2
            or not _is_constant(model, bias)
        ):
            continue
        if target.activation_type.name != _ALONE or not _is_constant(model, maker.inputIndex[1]):
            continue
        maker.inputIndex = [*maker.inputIndex, bias]
        maker.outputIndex = list(node.outputIndex)
        maker.name = node.name
        gone.append(id(node))
    model.nodes = [node for node in model.nodes if id(node) not in gone]
    return len(gone)


def _array(model: Table, tensor: int) -> np.ndarray:
    """A float32 constant."""
    table = model.allTensors[tensor]
    return np.frombuffer(table.data, np.float32).reshape(tuple(table.dims))


def _channels_of(model: Table, node: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """What a node does to each channel, ``(x - centre) * factor + shift``; None if it does something else."""
    inner = node.primitive
    if inner.kind not in ("FusedBatchNorm", "ScaleFusion"):
        return None
    if not all(_is_float_constant(model, int(i)) for i in node.inputIndex[1:]):
        return None
    parameters = [_array(model, int(i)) for i in node.inputIndex[1:]]
    if inner.kind == "FusedBatchNorm":
        scale, shift, mean, variance = parameters
        with np.errstate(all="ignore"):  # what is not finite is left as it was
            return mean, scale / np.sqrt(variance + np.float32(inner.epsilon)), shift
    if inner.activation_type.name != _ALONE or inner.axis not in (3, -1) or parameters[0].ndim != 1:
        return None
    factor, *shift = parameters
    return np.zeros_like(factor), factor, shift[0] if shift else np.zeros_like(factor)


def _is_float_constant(model: Table, tensor: int) -> bool:
    return _is_constant(model, tensor) and model.allTensors[tensor].dataType == int(DataType.FLOAT32)


def _takes_channels(model: Table, kind: str) -> int:
    """A factor and a summand for each channel behind a convolution become part of its weights and bias."""
    uses, gone = _Uses(model), []
    for node in model.nodes:
        if node.primitive.kind != kind:
            continue
        maker = uses.only_maker(node.inputIndex[0])
        if maker is None or maker.primitive.kind != "Conv2DFusion":
            continue
        if maker.primitive.activation_type.name != _ALONE:
            continue
        if not all(_is_float_constant(model, int(i)) for i in maker.inputIndex[1:]):
            continue
        found = _channels_of(model, node)
        if found is None:
            continue
        centre, factor, shift = found
        old = _array(model, int(maker.inputIndex[1]))
        with np.errstate(all="ignore"):
            bias = (
                _array(model, int(maker.inputIndex[2])) if len(maker.inputIndex) > 2 else np.zeros_like(shift)
            )
            weight = old * factor[:, None, None, None]
            bias = shift - (centre - bias) * factor
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            continue
        kernels = model.allTensors[int(maker.inputIndex[1])]
        maker.inputIndex = [
            maker.inputIndex[0],
            _added(model, weight, kernels.name, int(kernels.format)),
            _added(model, bias, f"{kernels.name}_bias", int(kernels.format)),
        ]
        maker.outputIndex = list(node.outputIndex)
        maker.name = node.name
        gone.append(id(node))
    model.nodes = [node for node in model.nodes if id(node) not in gone]
    return len(gone)


def _added(model: Table, array: np.ndarray, name: str, format: int) -> int:
    """A new constant of the model; its number."""
    data = memoryview(np.ascontiguousarray(array, np.float32).reshape(-1)).cast("B")
    table = Table("Tensor", nodeType=0, dataType=int(DataType.FLOAT32), dims=list(array.shape), format=format)
    table.name, table.data = name, data
    model.allTensors.append(table)
    return len(model.allTensors) - 1


#: Name of a fusion -> ``(model) -> how often it fired``, in the order in which they run.
FUSIONS: dict[str, Callable[[Table], int]] = {
    "ConvBiasaddFusion": lambda model: _takes_bias(model, ("Conv2DFusion", "Conv2dTransposeFusion")),
    "ConvBatchNormFusion": lambda model: _takes_channels(model, "FusedBatchNorm"),
    "ConvScaleFusion": lambda model: _takes_channels(model, "ScaleFusion"),
    "MatMulAddFusion": lambda model: _takes_bias(model, ("MatMulFusion",)),
    "ConvActivationFusion": lambda model: _takes_activation(model, ("Conv2DFusion",)),
    "MatMulActivationFusion": lambda model: _takes_activation(model, ("MatMulFusion",)),
}


def run(model: Table, without: Collection[str] = ()) -> dict[str, int]:
    """Fuse what can be, in place; how often each fusion fired.  Errors: ValueError for unknown names."""
    unknown = sorted(set(without) - set(FUSIONS))
    if unknown:
        raise ValueError(f"no fusion is called {unknown}: there are {sorted(FUSIONS)}")
    fired = {name: 0 if name in without else fuse(model) for name, fuse in FUSIONS.items()}
    _drop_unused(model)
    return fired


def _drop_unused(model: Table) -> None:
    """Take out the tensors that nothing reads or makes any more."""
    used = {int(i) for n in model.nodes for i in (*n.inputIndex, *n.outputIndex)}
    used |= {int(i) for i in (*model.inputIndex, *model.outputIndex)}
    place = {old: new for new, old in enumerate(sorted(used))}
    model.allTensors = [t for i, t in enumerate(model.allTensors) if i in used]
    for node in model.nodes:
        node.inputIndex = [place[int(i)] for i in node.inputIndex]
        node.outputIndex = [place[int(i)] for i in node.outputIndex]
    model.inputIndex = [place[int(i)] for i in model.inputIndex]
    model.outputIndex = [place[int(i)] for i in model.outputIndex]
    graph = model.subGraph[0]
    graph.inputIndices, graph.outputIndices = list(model.inputIndex), list(model.outputIndex)
    graph.nodeIndices = list(range(len(model.nodes)))
    graph.tensorIndices = list(range(len(model.allTensors)))
