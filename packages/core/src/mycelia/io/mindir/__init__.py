"""MindIR files: `load` gives an executable graph, `export` writes one from a Cell."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import Any

from mycelia.io import crypto, provenance
from mycelia.io.files import atomic_write

__all__ = ["export", "load", "load_mindir", "save_mindir"]

_SPLIT_KIB = 1 << 20  # weights beyond 1 GiB lie in a file of their own
_FORMATS = ("MINDIR", "AIR", "ONNX")


def load(file_name, **kwargs):
    """The graph of a MindIR file, for `nn.GraphCell(graph)`; see `run.MindIRGraph`.

    dec_key, dec_mode: key (bytes) and cipher ('AES-GCM', 'AES-CBC', 'SM4-CBC', or a function (path, key) ->
    bytes) of an encrypted file. Weights in files beside it are read too.
    Errors: FileFormatError (a ValueError) with file, node and reason if the file is damaged, encrypted, too
    new, or uses unknown operators; a call of the graph raises it where a node gets what its operator does not
    take. ValueError if the file is missing.
    """
    from mycelia.io.mindir.build import build
    from mycelia.io.mindir.read import damaged, opened

    dec_key, dec_mode = kwargs.pop("dec_key", None), kwargs.pop("dec_mode", "AES-GCM")
    path = _checked_path(file_name, "load")
    with opened(path, dec_key, dec_mode) as model:
        try:
            return build(model)
        except ValueError as e:
            raise damaged(path, e) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError) as e:  # what no check foresaw
            raise damaged(path, f"it is damaged ({type(e).__name__}: {e})") from e


def load_mindir(file_name):
    """The content of a MindIR file as its protobuf message, a ModelProto. Errors: as `load`."""
    return read_model(_checked_path(file_name, "load_mindir"))


def save_mindir(model, file_name):
    """Writes a ModelProto to a file; the suffix .mindir is added.

    Errors: TypeError for another kind of model.
    """
    from mycelia.io.mindir import mindir_pb2
    from mycelia.io.mindir.save import READ_ONLY

    if not isinstance(model, mindir_pb2.ModelProto):
        raise TypeError(
            f"For 'save_mindir', the argument 'model' must be a ModelProto, but got {type(model)}."
        )
    if not isinstance(file_name, str):
        raise TypeError(
            f"For 'save_mindir', the argument 'file_name' must be string, but got {type(file_name)}."
        )
    path = os.path.realpath(file_name).removesuffix(".mindir") + ".mindir"
    with atomic_write(path, READ_ONLY) as file:
        file.write(model.SerializeToString())


def _checked_path(file_name: Any, function: str) -> str:
    if not isinstance(file_name, str):
        raise TypeError(
            f"For '{function}', the argument 'file_name' must be string, but got {type(file_name)}."
        )
    if not file_name.endswith(".mindir"):
        raise ValueError(f"For '{function}', 'file_name' should end with '.mindir', but got {file_name}.")
    path = os.path.realpath(file_name)
    if not os.path.exists(path):
        raise ValueError(f"For '{function}', the file {path} does not exist.")
    return path


def read_model(path: str, dec_key: bytes | None = None, dec_mode: str | Callable = "AES-GCM") -> Any:
    """The ModelProto of a file, with weights from files beside it read into it. Errors: as `load`."""
    from mycelia.io.mindir.read import opened

    with opened(path, dec_key, dec_mode) as model:
        return model.complete()


def export(net, *inputs, file_name, file_format, **kwargs):
    """Writes a Cell or a function, as it computes for `inputs`, to a file; folders are made as needed.

    inputs: Tensors; sizes of None (`Tensor(shape=[None, 3], dtype=...)`) stay open. Whatever else `net` takes
    becomes part of the graph as it is.
    file_format: 'MINDIR', which adds the suffix .mindir; 'ONNX' (see `io.onnx.export`: .onnx, opset_version);
    others when a package is installed that writes them.
    enc_key, enc_mode: encrypt the file (see `load`; a function is called with (bytes, key)).
    custom_func: gets the finished message, a ModelProto, and may change it.
    Weights beyond 1 GiB go to a file beside it: NAME_graph.mindir and NAME_variables/data_N, with a new N for
    each export; a reader finds the old graph with its weights, or the new one with its own.
    Errors: TypeError, ValueError for wrong arguments; ValueError that lists operations
    that MindIR cannot express.
    """
    if "obf_func" in kwargs:
        raise NotImplementedError(
            "For 'export', the obfuscation of models (obf_func) does not exist any more."
        )
    if not callable(net):
        raise TypeError(
            f"For 'export', the argument 'net' should be a Cell or a function, but got {type(net)}."
        )
    if not isinstance(file_name, str):
        raise TypeError(f"For 'export', the argument 'file_name' must be string, but got {type(file_name)}.")
    if file_format not in _FORMATS:
        raise ValueError(
            f"For 'export', 'file_format' must be one of {list(_FORMATS)}, but got {file_format}."
        )
    if kwargs.get("custom_func") is not None and file_format != "MINDIR":
        raise ValueError(f"For 'export', 'custom_func' is for MINDIR, but 'file_format' is {file_format}.")
    before = {provenance.file_at(path) for path in _places(file_name, file_format)}
    tell = provenance.writing("export", net.get_parameters() if hasattr(net, "get_parameters") else ())
    if file_format == "MINDIR":
        _export_mindir(net, inputs, file_name, **kwargs)
    elif file_format == "ONNX":
        from mycelia.io import onnx

        onnx.export(net, *inputs, file_name=file_name, **kwargs)
    else:
        _exporter(file_format)(net, *inputs, file_name=file_name, **kwargs)
    for path in _places(file_name, file_format):
        if provenance.file_at(path) not in before:
            tell(path)


def _places(file_name: str, file_format: str) -> list[str]:
    """Where an export may put its files."""
    suffix = f".{file_format.lower()}"
    path = os.path.realpath(file_name)
    stem = path.removesuffix(suffix)
    data = glob.glob(f"{glob.escape(stem)}_variables/data_*")
    found = (path, stem + suffix, f"{stem}_graph{suffix}", f"{stem}{suffix}.data", *sorted(data))
    return [one for one in dict.fromkeys(found) if os.path.isfile(one)]


def _export_mindir(
    net: Any,
    inputs: tuple,
    file_name: str,
    enc_key: bytes | None = None,
    enc_mode="AES-GCM",
    custom_func: Callable | None = None,
    **kwargs: Any,
) -> None:
    from mycelia.io.capture import capture
    from mycelia.io.mindir import save
    from mycelia.io.mindir.write import to_model
    from mycelia.io.raw import of_tensor

    if enc_key is not None and not callable(enc_mode):
        crypto.check_key(enc_key, enc_mode, "enc")
    captured = capture(net, inputs)
    del captured["output_sizes"]
    model = to_model(**captured, with_data=False)
    parameters = [captured["weights"].get(value) for value in captured["graph"].parameters]
    weights = [of_tensor(parameter).data for parameter in parameters if parameter is not None]
    if custom_func is not None:  # it sees the weights, and may change them
        for proto, data in zip(model.graph.parameter, weights, strict=True):
            proto.raw_data = bytes(data)
        custom_func(model)
        weights = [memoryview(proto.raw_data) for proto in model.graph.parameter]
        for proto in model.graph.parameter:
            proto.ClearField("raw_data")

    def encrypted(data: bytes) -> bytes:
        return enc_mode(data, enc_key) if callable(enc_mode) else crypto.encrypt(data, enc_key, enc_mode)

    path = os.path.realpath(file_name).removesuffix(".mindir")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write = save.write_split if sum(map(len, weights)) >> 10 > _SPLIT_KIB else save.write
    write(model, weights, path, None if enc_key is None else encrypted)


def _exporter(file_format: str) -> Callable:
    """The function of a plugin that writes another format (hook mycelia_exporters)."""
    from mycelia.engine.base import plugins

    for exporters in plugins.manager().hook.mycelia_exporters():
        if file_format in exporters:
            return exporters[file_format]
    raise ValueError(f"For 'export', no installed package writes the format {file_format}.")
