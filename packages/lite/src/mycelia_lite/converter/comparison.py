"""Comparing a result with its source: `--check`.

The source runs on core's ops, and in its own framework's engine where that is installed; the result runs in
the runtime. Where an output departs, the file is run once more with every value as an output, and the first
node in the source's order whose value departs is named.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import mycelia as ms
from mycelia.ir import Graph, Node, Value, evaluate
from mycelia_lite.converter import rounding, trial
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.converter.options import Options
from mycelia_lite.converter.source import Source
from mycelia_lite.converter.writer import Writer
from mycelia_lite.enums import FmkType, Format
from mycelia_lite.format import Table
from mycelia_lite.model import Model

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_OPEN_SIZES = (1, 32, 224)  # that open sizes get
_WITH_SIZES = "core, with these sizes known"
_SPREAD = 4  # errors of one size that two orders of the same sums lead to differ by as much
_MOST_ROUNDING = 2e-2  # more is no rounding of sums, but of places or of steps


@dataclass(frozen=True)
class Departure:
    """How far an output lies from the source's: the greatest difference by the greatest value there.

    `rounding`: how far what `engine` answers lies from the source in float64, if `greatest` is due to that.
    """

    name: str
    greatest: float
    engine: str  # which computed the source
    rounding: float = 0.0


def distance(found: np.ndarray, want: np.ndarray) -> float:
    """The greatest difference by the greatest value of `want`; infinite if the arrays are of different kinds.

    What is not finite must be the same in both.
    """
    if found.shape != want.shape or found.dtype != want.dtype:
        return float("inf")
    if not found.size:
        return 0.0
    a, b = found.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return float("inf")
    difference = np.abs(a - b)[finite]
    scale = np.abs(b[finite]).max(initial=0)
    return float(difference.max(initial=0) / (scale if scale > 0 else 1))


class Check:
    """The answers of a source, with which a result can be compared.

    `inputs`, `expected`: of the source; `last`: whether its images have the channels last; `engine`: what
    computed `expected`.
    """

    engine = "core"
    runs = 1  # one after the other, for models that keep variables

    def __init__(
        self, options: Options, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], last: bool
    ) -> None:
        self.options, self.inputs, self.expected, self.last = options, inputs, expected, last
        usual = 1e-1 if options.weight_bf16 else 2e-2 if options.weight_fp16 else 1e-4
        self.tolerance = options.tolerance or usual

    def run(self, model: Table, written: Table) -> list[Departure]:
        """Compare `model`, ready to be stored; `written`: as it was before borders and fusions.

        Errors: ConversionError that names the outputs that depart, and where it begins.
        """
        try:
            made = trial.loaded(model)
            found = self._answers(made)
        except RuntimeError as error:
            raise ConversionError(Code.ERROR, f"check: the result does not run: {error}") from error
        names = [
            t.name if not i else f"{t.name} of run {i + 1}"
            for i in range(self.runs)
            for t in made.get_outputs()
        ]
        departures = self._compared(names, found, self.expected, self.engine)
        for engine, expected in self._engines():
            departures += self._compared(names, found, expected, engine)
        if any(map(self._is_far, departures)) and not self.options.tolerance:
            departures = self._with_rounding(departures, names, found)
        far = [d for d in departures if self._is_far(d)]
        if far:
            listed = ", ".join(f"'{d.name}' by {d.greatest:.3g} from {d.engine}" for d in far)
            raise ConversionError(
                Code.ERROR,
                f"check: the result departs from the source: {listed}, at most {self.tolerance:g} may be: "
                f"{self._where(written, far)}",
            )
        return departures

    def _is_far(self, departure: Departure) -> bool:
        return not (departure.greatest <= self.tolerance or departure.rounding)

    def _with_rounding(
        self, departures: Sequence[Departure], names: Sequence[str], found: Sequence[np.ndarray]
    ) -> list[Departure]:
        """The departures, with how much rounding it takes where the result is as near to the source in
        float64 as the engine is.
        """
        exact = self._exact()
        if exact is None:
            return list(departures)
        ours = self._compared(names, found, exact, "float64") * (len(departures) // len(found))
        answers = [a for _, expected in ((self.engine, self.expected), *self._engines()) for a in expected]
        judged = []
        for departure, own, answer, right in zip(
            departures, ours, answers, exact * (len(departures) // len(found)), strict=True
        ):
            theirs = distance(answer, right)
            near = own.greatest <= max(self.tolerance, _SPREAD * theirs) and theirs <= _MOST_ROUNDING
            judged.append(
                replace(departure, rounding=theirs) if self._is_far(departure) and near else departure
            )
        return judged

    def _exact(self) -> list[np.ndarray] | None:
        """What the source answers in float64; None where nothing computes it."""
        return None

    def _answers(self, model: Model) -> list[np.ndarray]:
        arrays = []
        for array in self.inputs:
            if self.options.input_format is not None and array.ndim == 4:
                array = _turned(array, self.last, self.options.input_format)
            if self.options.input_data_type is not None:
                array = array.astype(self.options.input_data_type.numpy)
            arrays.append(np.ascontiguousarray(array))
        return [y for _ in range(self.runs) for y in trial.answers(model, arrays)]

    def _compared(
        self,
        names: Sequence[str],
        found: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        engine: str,
    ) -> list[Departure]:
        departures = []
        for name, array, want in zip(names, found, expected, strict=True):
            if self.options.output_format is not None and want.ndim == 4:
                want = _turned(want, self.last, self.options.output_format)
            if self.options.output_data_type is not None:
                want = want.astype(self.options.output_data_type.numpy)
            departures.append(Departure(name, distance(array, want), engine))
        return departures

    def _engines(self) -> Iterator[tuple[str, list[np.ndarray]]]:
        """Other engines that compute the source."""
        return iter(())

    def _where(self, written: Table, far: Collection[Departure]) -> str:
        """Where it begins."""
        return "a fusion, a border or the storage of the constants does it"


class SourceCheck(Check):
    """Of a source in core's IR. It is made before the writer rewrites the graph.

    `with_sizes`: imports the source again, with all sizes known. What the importer makes of open sizes may
    have operators of the runtime, which core does not compute.
    """

    def __init__(
        self, source: Source, options: Options, path: Any, writer: Writer,
        with_sizes: Callable[[Mapping[str, Sequence[int]]], Source],
    ) -> None:  # fmt: skip
        self.source, self.path, self.writer, self.options = source, path, writer, options
        self.with_sizes, self.runs = with_sizes, 2 if source.states else 1
        parameters = source.graph.parameters[: len(source.input_names)]
        shapes = [v.type.shape for v in parameters]
        dtypes = [np.dtype(v.type.dtype.np) for v in parameters]
        is_open = any(type(n) is not int or n < 0 for shape in shapes for n in shape)
        reasons: list[str] = []
        answers: list[tuple[str, list[np.ndarray]]] = []
        for size in _OPEN_SIZES if is_open else (1,):  # the first with which most engines run
            known = [[n if type(n) is int and n >= 0 else size for n in shape] for shape in shapes]
            drawn = _inputs(known, dtypes, options)
            if len(found := self._answered(drawn, reasons, is_open)) > len(answers):
                inputs, answers = drawn, found
        if not answers:
            listed = "; ".join(dict.fromkeys(reasons))
            raise ConversionError(Code.NOT_SUPPORT, f"check: nothing here computes the source: {listed}")
        (self.engine, expected), *self.others = answers
        super().__init__(options, inputs, expected, source.framework in (FmkType.TF, FmkType.TFLITE))

    def _with_sizes(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What core answers to the source as it is imported for these sizes alone."""
        shapes = dict(zip(self.source.input_names, (list(a.shape) for a in inputs), strict=True))
        return self._by_core(self.with_sizes(shapes), inputs)

    def _by_core(self, source: Source, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What core answers in each run; its variables go from one to the next."""
        count, states = len(source.output_names), source.states
        answers = []
        for _ in range(self.runs):
            found = _run(source.graph, [*inputs, *states])
            answers += found[:count]
            states = found[count:]
        return answers

    def _answered(
        self, inputs: Sequence[np.ndarray], reasons: list[str], is_open: bool
    ) -> list[tuple[str, list[np.ndarray]]]:
        """What core and other engines answer, by name; `reasons` gets why one does not."""
        engines = {"core": lambda: self._by_core(self.source, inputs)}
        if is_open:
            engines[_WITH_SIZES] = lambda: self._with_sizes(inputs)
        if self.source.framework is FmkType.ONNX and importlib.util.find_spec("onnxruntime"):
            engines["onnxruntime"] = lambda: _by_onnxruntime(self.path, self.source, inputs)
        if self.source.framework is FmkType.TFLITE and importlib.util.find_spec("ai_edge_litert"):
            engines["LiteRT"] = lambda: _by_litert(
                self.path, self.source, inputs, self.options.signature, self.runs
            )
        if self.source.framework is FmkType.TF and importlib.util.find_spec("tensorflow"):
            engines["TensorFlow"] = lambda: _by_tensorflow(self.path, self.source, inputs)
        if self.source.framework is FmkType.PYTORCH:
            engines["torch"] = lambda: _by_torch(self.path, inputs)
        answers: dict[str, list[np.ndarray]] = {}
        for name, compute in engines.items():
            if name == _WITH_SIZES and "core" in answers:
                continue
            try:
                answers[name] = compute()
            except Exception as error:  # other engines raise what they like
                reasons.append(f"{name}: {str(error).partition(chr(10))[0]}")
        return list(answers.items())

    def _engines(self) -> Iterator[tuple[str, list[np.ndarray]]]:
        return iter(self.others)

    def _exact(self) -> list[np.ndarray] | None:
        shapes = dict(zip(self.source.input_names, (list(a.shape) for a in self.inputs), strict=True))
        try:
            return rounding.in_float64(self.with_sizes(shapes).graph, self.inputs)
        except Exception:  # an op without float64, a graph that only another engine computes
            return None

    def _where(self, written: Table, far: Collection[Departure]) -> str:
        engine = next((d.engine for d in far if d.engine != "core"), None)
        if self.engine == _WITH_SIZES:
            return "core computes the source with these sizes only, so no node is found"
        if self.engine != "core":
            return "core cannot compute the source, so no node is found"
        if engine is not None and all(d.engine != "core" for d in far):
            return f"the importer, core computes what the result does and {engine} something else"
        values: dict[Value, np.ndarray] = {}
        given = [*self.inputs, *self.source.states]
        outputs = _run(self.source.graph, given, values)  # rewritten into ops that the file can have
        expected = self.expected[: len(self.source.output_names)]
        if any(not distance(a, b) <= self.tolerance for a, b in zip(outputs, expected)):
            return "an op that was composed of others computes something else"
        try:
            stored = every_value(written, self.inputs)
        except RuntimeError as error:
            return f"the file before the fusions does not run: {error}"
        tensors = self.writer.numbers()
        for node in self.source.graph.nodes:
            for value in node.outputs:
                index, is_last = tensors.get(value, (-1, False))
                if index not in stored or value not in values:
                    continue
                want = values[value].transpose(_TO_LAST) if is_last else values[value]
                off = distance(stored[index], want)
                if not off <= self.tolerance:
                    place = f" at {node.location}" if node.location else ""
                    name = written.allTensors[index].name
                    kind = _kind(node)
                    return f"it begins with '{name}', op '{kind}'{place}, which departs by {off:.3g}"
        return super()._where(written, far)


class FileCheck(Check):
    """Of a `.ms` file, which runs in the runtime as it is."""

    engine = "the file itself"

    def __init__(self, model: Table, options: Options) -> None:
        try:
            loaded = trial.loaded(model)
            tensors = loaded.get_inputs()
            shapes = [[1 if n < 0 else n for n in t.shape] for t in tensors]
            inputs = _inputs(shapes, [t.dtype.numpy for t in tensors], options)
            expected = trial.answers(loaded, inputs)
        except RuntimeError as error:
            raise ConversionError(Code.NOT_SUPPORT, f"check: the file does not run: {error}") from error
        borders = [model.allTensors[i] for i in (*model.inputIndex, *model.outputIndex)]
        last = any(len(t.dims) == 4 and int(t.format) == Format.NHWC for t in borders)
        super().__init__(options, inputs, expected, last)


def _inputs(
    shapes: Sequence[Sequence[int]], dtypes: Sequence[np.dtype], options: Options
) -> list[np.ndarray]:
    """Inputs of the source that the border's data type can hold, too."""
    arrays = trial.draw(shapes, dtypes)
    border = options.input_data_type
    return [a if border is None else a.astype(border.numpy).astype(a.dtype) for a in arrays]


def every_value(model: Table, arrays: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """What each tensor that a node of the first graph makes holds, by its number.

    Errors: RuntimeError of the runtime.
    """
    model = model.copy()
    graph = model.subGraph[0] if model.subGraph else None
    numbers = range(len(model.nodes)) if graph is None else map(int, graph.nodeIndices)
    made = [int(o) for n in numbers for o in model.nodes[n].outputIndex]
    model.outputIndex = made
    if graph is not None:
        graph.outputIndices = made
    for i in made:
        model.allTensors[i].name = str(i)
    loaded = trial.loaded(model)
    found = trial.answers(loaded, arrays)
    return {int(t.name): a for t, a in zip(loaded.get_outputs(), found, strict=True)}


def _run(
    graph: Graph, arrays: Sequence[np.ndarray], values: dict[Value, np.ndarray] | None = None
) -> list[np.ndarray]:
    """The outputs of a graph by core's ops; `values` gets those of all nodes."""
    if values is None:
        return [t.asnumpy() for t in evaluate(graph, [ms.Tensor(a) for a in arrays])]
    every = Graph(graph.name)
    every.parameters, every.nodes = graph.parameters, graph.nodes
    made = list(dict.fromkeys(v for n in graph.nodes for v in n.outputs))
    every.outputs = [*graph.outputs, *made]
    results = [t.asnumpy() for t in evaluate(every, [ms.Tensor(a) for a in arrays])]
    values.update(zip(made, results[len(graph.outputs) :]))
    return results[: len(graph.outputs)]


def _kind(node: Node) -> str:
    """The op, or the operator of the file that the importer named."""
    if node.op.name != "file_operator":
        return node.op.name
    return dict(node.attrs["fields"]).get("type", node.attrs["kind"])


def _turned(array: np.ndarray, is_last: bool, layout: Format) -> np.ndarray:
    """A value of rank 4 of the source in the layout of the border."""
    if is_last == (layout is Format.NHWC):
        return array
    return array.transpose(_TO_FIRST if is_last else _TO_LAST)


def _by_onnxruntime(path: str, source: Source, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(source.output_names, dict(zip(source.input_names, arrays, strict=True)))


def _by_litert(
    path: str, source: Source, arrays: Sequence[np.ndarray], signature: str, runs: int
) -> list[np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path)
    if signature:
        runner, given = interpreter.get_signature_runner(signature), dict(zip(source.input_names, arrays))
        answers = [runner(**given) for _ in range(runs)]
        return [found[name] for found in answers for name in source.output_names]
    details = {d["name"]: d for d in interpreter.get_input_details()}
    for name, array in zip(source.input_names, arrays, strict=True):
        interpreter.resize_tensor_input(details[name]["index"], array.shape)
    interpreter.allocate_tensors()
    outputs = {d["name"]: d["index"] for d in interpreter.get_output_details()}
    answers = []
    for _ in range(runs):
        for name, array in zip(source.input_names, arrays, strict=True):
            interpreter.set_tensor(details[name]["index"], array)
        interpreter.invoke()
        answers += [interpreter.get_tensor(outputs[name]) for name in source.output_names]
    return answers


def _by_torch(program: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """`program`: an ExportedProgram, or the path of one."""
    import torch

    program = torch.export.load(program) if isinstance(program, str) else program
    with torch.no_grad():
        results = program.module()(*map(torch.from_numpy, arrays))
    return [r.numpy() for r in torch.utils._pytree.tree_leaves(results)]


def _by_tensorflow(path: str, source: Source, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    import tensorflow as tf

    with open(path, "rb") as file, tf.Graph().as_default() as graph:
        tf.compat.v1.import_graph_def(tf.compat.v1.GraphDef.FromString(file.read()), name="")
        given = {f"{name}:0": array for name, array in zip(source.input_names, arrays, strict=True)}
        wanted = [name if ":" in name else f"{name}:0" for name in source.output_names]
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run(wanted, given)
