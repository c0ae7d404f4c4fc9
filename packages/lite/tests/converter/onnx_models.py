"""ONNX models built by hand, without the package `onnx`, and what an imported graph answers."""

from __future__ import annotations

import numpy as np

import mycelia as ms
import mycelia_lite as mslite
from mycelia.io.onnx import onnx_pb2
from mycelia.ir import evaluate
from mycelia_lite.converter.importers import onnx

_NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
    "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip


def tensor(array, name=""):
    """A TensorProto with raw data."""
    array = np.asarray(array)
    message = onnx_pb2.TensorProto(name=name, dims=array.shape, data_type=_NUMBERS[array.dtype.name])
    message.raw_data = array.tobytes()
    return message


def node(kind, inputs, outputs, name="", domain="", **attributes):
    """A NodeProto; inputs and outputs are names with spaces between, '-' one that is left out."""
    names = [["" if n == "-" else n for n in text.split()] for text in (inputs, outputs)]
    message = onnx_pb2.NodeProto(op_type=kind, input=names[0], output=names[1], name=name, domain=domain)
    for key, value in attributes.items():
        message.attribute.append(attribute(key, value))
    return message


def attribute(name, value):
    made = onnx_pb2.AttributeProto(name=name)
    if isinstance(value, float):
        made.f, made.type = value, 1
    elif isinstance(value, int):
        made.i, made.type = value, 2
    elif isinstance(value, str):
        made.s, made.type = value.encode(), 3
    elif isinstance(value, np.ndarray):
        made.t.CopyFrom(tensor(value))
        made.type = 4
    elif isinstance(value, onnx_pb2.GraphProto):
        made.g.CopyFrom(value)
        made.type = 5
    elif value and isinstance(value[0], str):
        made.strings.extend(text.encode() for text in value)
        made.type = 8
    elif value and isinstance(value[0], float):
        made.floats.extend(value)
        made.type = 6
    else:
        made.ints.extend(value)
        made.type = 7
    return made


def border(name, dtype, shape):
    """A ValueInfoProto; None or a name in the shape is an open size, no shape at all is None."""
    message = onnx_pb2.ValueInfoProto(name=name)
    message.type.tensor_type.elem_type = _NUMBERS[np.dtype(dtype).name]
    if shape is not None:
        message.type.tensor_type.shape.SetInParent()
        for n in shape:
            dim = message.type.tensor_type.shape.dim.add()
            if isinstance(n, int):
                dim.dim_value = n
            elif n is not None:
                dim.dim_param = n
    return message


def graph(nodes, inputs, outputs, weights=None):
    """A GraphProto for an attribute; inputs and outputs as for `model`."""
    made = onnx_pb2.GraphProto(name="inner", node=nodes)
    made.input.extend(border(name, *of) for name, of in inputs.items())
    made.output.extend(border(name, np.float32, None) for name in outputs.split())
    made.initializer.extend(tensor(array, name) for name, array in (weights or {}).items())
    return made


def model(nodes, inputs, outputs, weights=None, opset=17):
    """A ModelProto. `inputs`: name -> (dtype, shape); `outputs`: names with spaces between."""
    graph = onnx_pb2.GraphProto(name="g", node=nodes)
    graph.input.extend(border(name, *of) for name, of in inputs.items())
    graph.output.extend(border(name, np.float32, None) for name in outputs.split())
    graph.initializer.extend(tensor(array, name) for name, array in (weights or {}).items())
    return onnx_pb2.ModelProto(
        ir_version=8, graph=graph, opset_import=[onnx_pb2.OperatorSetIdProto(domain="", version=opset)]
    )


def places(start, end, step, n):
    """The places of n that Slice names, by ONNX: back from before the first place is from there."""
    start, end = (at + n if at < 0 else at for at in (start, end))
    if step > 0:
        return np.arange(min(max(start, 0), n), min(max(end, 0), n), step)
    return np.arange(min(max(start, 0), n - 1), min(max(end, -1), n - 1), step) if n else np.arange(0)


def write(path, message) -> str:
    path.write_bytes(message.SerializeToString())
    return str(path)


def answers(path, *arrays, shapes=None):
    """What the imported graph of a file computes."""
    source = onnx.load(str(path), shapes or {})
    return [t.asnumpy() for t in evaluate(source.graph, [ms.Tensor(a) for a in arrays])]


def converted(tmp_path, message):
    """A function that runs the converted model on arrays."""
    path = write(tmp_path / "m.onnx", message)
    mslite.Converter().convert(mslite.FmkType.ONNX, path, str(tmp_path / "m"))
    loaded = mslite.Model()
    loaded.build_from_file(str(tmp_path / "m.ms"))

    def run(*arrays):
        loaded.resize(loaded.get_inputs(), [list(a.shape) for a in arrays])
        for tensor, array in zip(loaded.get_inputs(), arrays):
            tensor.set_data_from_numpy(array)
        return [t.get_data_to_numpy() for t in loaded.predict(loaded.get_inputs())]

    return run


def run(tmp_path, kind, arrays, count=1, opset=17, constants=(), **attributes):
    """The outputs of one node on arrays; those at positions `constants` are weights, None is left out."""
    names = [f"x{i}" if a is not None else "-" for i, a in enumerate(arrays)]
    given = {n: a for i, (n, a) in enumerate(zip(names, arrays)) if i not in constants and a is not None}
    weights = {f"x{i}": arrays[i] for i in constants}
    outputs = " ".join(f"y{i}" for i in range(count))
    message = model(
        [node(kind, " ".join(names), outputs, name="it", **attributes)],
        {n: (a.dtype, a.shape) for n, a in given.items()}, outputs, weights, opset,
    )  # fmt: skip
    return answers(write(tmp_path / "m.onnx", message), *given.values())
