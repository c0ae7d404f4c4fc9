"""Files made node by node, for what the optimiser does with them."""

from __future__ import annotations

import numpy as np

import mycelia_lite as mslite
from mycelia_lite.converter import optimise
from mycelia_lite.format import Table, write


class Net:
    """The nodes of a file: `net("AddFusion", x, y)` adds one and gives its tensor."""

    def __init__(self, seed: int = 0) -> None:
        self.tensors: list[Table] = []
        self.nodes: list[Table] = []
        self.inputs: list[int] = []
        self.random = np.random.default_rng(seed)

    def _tensor(self, name: str, **fields) -> int:
        self.tensors.append(Table("Tensor", name=name, **fields))
        return len(self.tensors) - 1

    def input(self, *shape: int, dtype=np.float32) -> int:
        kind = int(mslite.DataType.of(np.dtype(dtype)))
        self.inputs.append(self._tensor(f"x{len(self.inputs)}", nodeType=2, dataType=kind, dims=list(shape)))
        return self.inputs[-1]

    def constant(self, value, dtype=np.float32) -> int:
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        kind = int(mslite.DataType.of(array.dtype))
        name = f"constant_{len(self.tensors)}"
        return self._tensor(name, nodeType=0, dataType=kind, dims=list(array.shape), data=array.tobytes())

    def integers(self, *values: int) -> int:
        return self.constant(values, np.int32)

    def weights(self, *shape: int) -> int:
        """A constant of random numbers."""
        return self.constant(self.random.normal(size=shape).astype(np.float32))

    def __call__(self, kind: str, *inputs: int, results: int = 1, **attributes):
        name = f"{kind}_{len(self.nodes)}"
        made = [self._tensor(f"{name}:{i}", nodeType=2) for i in range(results)]
        self.nodes.append(
            Table(
                "CNode",
                name=name,
                primitive=Table(kind, **attributes),
                inputIndex=list(inputs),
                outputIndex=made,
            )
        )
        return made[0] if results == 1 else made

    def activation(self, x: int, kind: str) -> int:
        return self("Activation", x, activation_type=kind)

    def transpose(self, x: int, *order: int) -> int:
        return self("Transpose", x, self.integers(*order))

    def reshape(self, x: int, *shape: int) -> int:
        return self("Reshape", x, self.integers(*shape))

    def reduce(self, x: int, *axes: int, mode: str = "ReduceMean", keep_dims: bool = True) -> int:
        return self("ReduceFusion", x, self.integers(*axes), mode=mode, keep_dims=keep_dims, coeff=1.0)

    def slice(self, x: int, begin, end, stride=None) -> int:
        places = [self.integers(*v) for v in (begin, end, stride or [1] * len(begin))]
        return self("StridedSlice", x, *places)

    def conv(self, x: int, inputs: int, outputs: int, size: int = 3, bias: bool = False, **attributes) -> int:
        group = attributes.get("group", 1)
        given = dict(
            pad_mode="PAD", kernel_size=[size, size], group=1, in_channel=inputs, out_channel=outputs
        )
        weights = self.weights(outputs, size, size, inputs // group)
        more = [self.weights(outputs)] if bias else []
        return self("Conv2DFusion", x, weights, *more, **{**given, **attributes})

    def model(self, *outputs: int) -> Table:
        """The file's root; shapes and dtypes between are those that the runtime finds."""
        made = [int(o) for n in self.nodes for o in n.outputIndex]
        session = load(self._root(made))
        for tensor, found in zip(made, session.get_outputs()):
            self.tensors[tensor].dims = found.shape
            self.tensors[tensor].dataType = int(found.dtype)
        return self._root(list(outputs))

    def _root(self, outputs: list[int]) -> Table:
        graph = Table(
            "SubGraph",
            inputIndices=self.inputs,
            outputIndices=outputs,
            nodeIndices=list(range(len(self.nodes))),
        )
        return Table(
            "MetaGraph",
            inputIndex=self.inputs,
            outputIndex=outputs,
            nodes=self.nodes,
            allTensors=self.tensors,
            subGraph=[graph],
        )


def load(model: Table) -> mslite.Model:
    """The model in the runtime."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.ms"
        write(path, model)
        session = mslite.Model()
        session.build_from_file(str(path))
    return session


def answers(model: Table, *arrays: np.ndarray) -> list[np.ndarray]:
    session = load(model)
    for tensor, array in zip(session.get_inputs(), arrays, strict=True):
        tensor.set_data_from_numpy(array)
    return [t.get_data_to_numpy() for t in session.predict(session.get_inputs())]


def values(model: Table, seed: int = 1) -> list[np.ndarray]:
    """Random inputs of a model."""
    random = np.random.default_rng(seed)
    made = []
    for i in model.inputIndex:
        tensor = model.allTensors[int(i)]
        dtype = mslite.DataType(tensor.dataType).numpy
        made.append((2 * random.normal(size=tuple(tensor.dims))).astype(dtype))
    return made


def kinds(model: Table) -> list[str]:
    return [n.primitive.kind for n in model.nodes]


def agree(before: list[np.ndarray], after: list[np.ndarray], tolerance: float) -> None:
    assert len(before) == len(after)
    for a, b in zip(before, after):
        assert a.shape == b.shape and a.dtype == b.dtype
        same = np.isfinite(a)
        assert (same == np.isfinite(b)).all() and np.array_equal(a[~same], b[~same], equal_nan=True)
        limit = tolerance * max(1.0, np.abs(a[same]).max(initial=0))
        assert np.abs(a[same].astype(np.float64) - b[same]).max(initial=0) <= limit


def only(*rules: str) -> set[str]:
    """All rules but these."""
    return set(optimise.RULES) - set(rules)


def check(net: Net, outputs, rule: str, fires: int = 1, tolerance: float = 3e-6) -> Table:
    """The model after this rule alone, which fired so often; its answers are the same."""
    model = net.model(*(outputs if isinstance(outputs, list | tuple) else [outputs]))
    arrays = values(model)
    expected = answers(model, *arrays)
    after = model.copy()
    done = optimise.run(after, only(rule))
    assert done.fired[rule] == fires and sum(done.fired.values()) == fires
    agree(expected, answers(after, *arrays), tolerance)
    agree(expected, _with_all(model, arrays), 10 * tolerance)
    return after


def _with_all(model: Table, arrays: list[np.ndarray]) -> list[np.ndarray]:
    model = model.copy()
    optimise.run(model)
    return answers(model, *arrays)
