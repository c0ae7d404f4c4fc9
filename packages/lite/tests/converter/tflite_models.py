"""TensorFlow Lite models built by hand with the schema's own writer, and what they answer when converted."""

from __future__ import annotations

import numpy as np

import mycelia as ms
import mycelia_lite as mslite
from mycelia.ir import evaluate
from mycelia_lite.converter.importers import tflite
from mycelia_lite.converter.importers.tflite.file import TFL3
from mycelia_lite.format import Table, encode

KINDS = {
    "float32": "FLOAT32", "float16": "FLOAT16", "int32": "INT32", "uint8": "UINT8", "int64": "INT64",
    "bool": "BOOL", "int16": "INT16", "int8": "INT8", "uint32": "UINT32", "uint64": "UINT64",
}  # fmt: skip


def table(kind, **fields):
    return Table(TFL3.tables[kind], **fields)


def scaled(scale, zero=0, axis=0):
    """The quantization of a tensor."""
    scales, zeros = np.atleast_1d(scale).astype(np.float32), np.atleast_1d(zero)
    return table(
        "QuantizationParameters", scale=scales.tolist(), zero_point=zeros.tolist(), quantized_dimension=axis
    )


class Builder:
    """A model under construction: tensors by name, operators in order."""

    def __init__(self):
        self.buffers, self.codes, self.graphs = [table("Buffer")], [], []
        self.begin("main")

    def begin(self, name):
        """A further subgraph; its number."""
        self.names, self.tensors, self.operators = {}, [], []
        graph = table("SubGraph", name=name, tensors=self.tensors, operators=self.operators)
        self.graphs.append(graph)
        return len(self.graphs) - 1

    def tensor(self, name, dtype="float32", shape=(), data=None, quantization=None, signature=None, **more):
        """A tensor, with `data` a constant; its name."""
        made = table("Tensor", name=name, type=KINDS.get(dtype, dtype), shape=list(shape), **more)
        if quantization is not None:
            made.quantization = quantization
        if signature is not None:
            made.shape_signature = list(signature)
        if data is not None:
            made.buffer = len(self.buffers)
            self.buffers.append(table("Buffer", data=bytes(data)))
        self.names[name] = len(self.tensors)
        self.tensors.append(made)
        return name

    def constant(self, name, array, quantization=None):
        array = np.asarray(array)
        return self.tensor(name, array.dtype.name, array.shape, array.tobytes(), quantization)

    def add(self, kind, inputs, outputs, options=None, custom=b"", version=1, second=None, between=()):
        """An operator; inputs and outputs are names, None is left out.

        `second`: options of newer kinds; `between`: names of intermediate tensors.
        """
        number = TFL3.enums["BuiltinOperator"]["CUSTOM" if kind.startswith("CUSTOM.") else kind]
        code = table(
            "OperatorCode",
            builtin_code=number,
            deprecated_builtin_code=min(int(number), 127),
            version=version,
        )
        if kind.startswith("CUSTOM."):
            code.custom_code = kind.partition(".")[2]
        if code not in self.codes:
            self.codes.append(code)
        made = table("Operator", opcode_index=self.codes.index(code))
        made.inputs = [-1 if n is None else self.names[n] for n in inputs]
        made.outputs = [self.names[n] for n in outputs]
        if options is not None:
            made.builtin_options = options
        made.intermediates = [self.names[n] for n in between]
        if second is not None:
            made.builtin_options_2 = second
        made.custom_options = custom
        self.operators.append(made)

    def borders(self, inputs, outputs):
        self.graphs[-1].inputs = [self.names[n] for n in inputs]
        self.graphs[-1].outputs = [self.names[n] for n in outputs]

    def model(self):
        return table(
            "Model", version=3, operator_codes=self.codes, subgraphs=self.graphs, buffers=self.buffers,
            description="made by hand",
        )  # fmt: skip

    def write(self, path):
        path.write_bytes(encode(self.model()))
        return str(path)


def of_one(kind, arrays, outputs, options=None, constants=(), quantizations=(), custom=b""):
    """A model of one operator. `outputs`: (dtype, shape, quantization); None in `arrays` is left out."""
    made, names = Builder(), []
    quantizations = (
        {**dict(enumerate(quantizations))} if not isinstance(quantizations, dict) else quantizations
    )
    for i, array in enumerate(arrays):
        if array is None:
            names.append(None)
            continue
        array, how = np.asarray(array), quantizations.get(i)
        data = array.tobytes() if i in constants else None
        names.append(made.tensor(f"x{i}", array.dtype.name, array.shape, data, how))
    results = [made.tensor(f"y{i}", o[0], o[1], None, *o[2:]) for i, o in enumerate(outputs)]
    made.add(kind, names, results, options, custom)
    made.borders([n for i, n in enumerate(names) if n is not None and i not in constants], results)
    return made


def answers(tmp_path, source, *arrays, shapes=None):
    """What the model answers when it is converted and runs; `source` is a Builder or a path."""
    path = source if isinstance(source, str) else source.write(tmp_path / "m.tflite")
    converter = mslite.Converter()
    converter.input_shape = shapes or {}
    report = converter.convert(mslite.FmkType.TFLITE, path, str(tmp_path / "m"))
    return run(report.path, *arrays)


def core_answers(tmp_path, source, *arrays):
    """What core computes for the imported graph of a Builder."""
    found = tflite.load(source.write(tmp_path / "m.tflite"), {})
    return [t.asnumpy() for t in evaluate(found.graph, [ms.Tensor(a) for a in arrays])]


def check_core(case, names, fixture, tmp_path):
    """Core's answers to the files that `case` makes of names are those recorded in a fixture."""
    for name in names:
        source, inputs = case(name)
        (y,) = core_answers(tmp_path, source, *inputs)
        np.testing.assert_array_equal(y, np.load(fixture)[name], err_msg=name)


def run(path, *arrays):
    model = mslite.Model()
    model.build_from_file(path)
    if any(list(t.shape) != list(a.shape) for t, a in zip(model.get_inputs(), arrays)):
        model.resize(model.get_inputs(), [list(a.shape) for a in arrays])
    inputs = model.get_inputs()
    for tensor, array in zip(inputs, arrays):
        tensor.set_data_from_numpy(np.ascontiguousarray(array))
    return [t.get_data_to_numpy() for t in model.predict(inputs)]
