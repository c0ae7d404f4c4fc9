"""MindIR files: `load` gives an executable graph, `export` writes one from a Cell."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mycelia.io import crypto
from mycelia.io.files import atomic_write

__all__ = ["export", "load", "load_mindir", "save_mindir"]

_MAX_VERSION = 3
_READ_ONLY = 0o400  # as MindSpore leaves its files: a model is replaced as a whole
_SPLIT_KIB = 1 << 20  # weights beyond 1 GiB lie in a file of their own
_ALIGNMENT = 64
_FORMATS = ("MINDIR", "AIR", "ONNX")


def load(file_name, **kwargs):
    """The graph of a MindIR file, for `nn.GraphCell(graph)`; see `run.MindIRGraph`.

    dec_key, dec_mode: key (bytes) and cipher ('AES-GCM', 'AES-CBC', 'SM4-CBC', or a function (path, key) ->
    bytes) of an encrypted file. Weights in files beside it are read too.
    Errors: ValueError with the reason if the file is missing, damaged, encrypted, too new,
    or uses unknown operators.
    """
    from mycelia.io.mindir.run import build

    dec_key, dec_mode = kwargs.pop("dec_key", None), kwargs.pop("dec_mode", "AES-GCM")
    path = _checked_path(file_name, "load")
    model = read_model(path, dec_key, dec_mode)
    try:
        return build(model)
    except ValueError as e:
        raise ValueError(f"Failed to load the MindIR file {path}: {e}.") from None
    # A damaged file shows anywhere: names that are no text come as bytes, for instance.
    except (AttributeError, IndexError, KeyError, TypeError) as e:
        raise ValueError(f"Failed to load the MindIR file {path}: it is damaged ({e}).") from e


def load_mindir(file_name):
    """The content of a MindIR file as its protobuf message, a ModelProto. Errors: as `load`."""
    return read_model(_checked_path(file_name, "load_mindir"))


def save_mindir(model, file_name):
    """Writes a ModelProto to a file; the suffix .mindir is added.

    Errors: TypeError for another kind of model.
    """
    from mycelia.io.mindir import mindir_pb2

    if not isinstance(model, mindir_pb2.ModelProto):
        raise TypeError(
            f"For 'save_mindir', the argument 'model' must be a ModelProto, but got {type(model)}."
        )
    if not isinstance(file_name, str):
        raise TypeError(
            f"For 'save_mindir', the argument 'file_name' must be string, but got {type(file_name)}."
        )
    with atomic_write(os.path.realpath(file_name).removesuffix(".mindir") + ".mindir", _READ_ONLY) as file:
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
    """The ModelProto of a file, checked, with external weights read into it."""
    from google.protobuf.message import DecodeError

    from mycelia.io.mindir import mindir_pb2

    data = _plain(path, dec_key, dec_mode)
    try:
        model = mindir_pb2.ModelProto.FromString(data)
    except DecodeError:
        raise ValueError(
            f"Failed to load the MindIR file {path}: it is damaged, cut off, or no MindIR."
        ) from None
    problem = _problem(model)
    if problem:
        raise ValueError(f"Failed to load the MindIR file {path}: {problem}.")
    _read_external(model, path, dec_key, dec_mode)
    return model


def _plain(path: str, key: bytes | None, mode: str | Callable) -> bytes:
    if key is not None and callable(mode):
        return mode(path, key)
    with open(path, "rb") as file:
        data = file.read()
    if key is None:
        if crypto.is_encrypted(data[:4]):
            raise ValueError(f"The MindIR file {path} is encrypted: pass the right 'dec_key' and 'dec_mode'.")
        return data
    try:
        return bytes(crypto.decrypt(data, key, mode))
    except ValueError as e:
        raise ValueError(f"Failed to decrypt the MindIR file {path}: {e}.") from None


def _problem(model: Any) -> str:
    if not model.HasField("producer_name") or not model.HasField("model_version"):
        return "it names no producer and model version, so it is no MindIR"
    if model.HasField("little_endian") and not model.little_endian:
        return "its numbers are big endian"
    if not 0 <= model.mind_ir_version <= _MAX_VERSION:
        return f"its version is {model.mind_ir_version}, versions up to {_MAX_VERSION} are known"
    if not model.HasField("graph"):
        return "it has no graph"
    return ""


def _read_external(model: Any, path: str, key: bytes | None, mode: str | Callable) -> None:
    """Weights in files beside the model: where the parameters say, or, in old files, as graphs."""
    from mycelia.io.mindir import mindir_pb2

    directory, opened = os.path.dirname(path), {}
    for proto in model.graph.parameter:
        if not proto.HasField("external_data"):
            continue
        place = proto.external_data
        file = os.path.realpath(os.path.join(directory, place.location))
        if os.path.commonpath((file, directory)) != directory:
            raise ValueError(f"{path}: the weights '{proto.name}' lie outside its folder: {place.location}")
        if file not in opened:
            if not os.path.exists(file):
                raise ValueError(
                    f"{path}: the file {file} with its weights does not exist; they belong together"
                )
            opened[file] = _plain_weights(file, key, mode)
        data = opened[file]
        if place.offset + place.length > len(data) or place.offset < 0:
            raise ValueError(f"{path}: '{proto.name}' lies beyond the end of {file}: the file is cut off")
        proto.raw_data = bytes(data[place.offset : place.offset + place.length])
    variables = path.removesuffix("_graph.mindir") + "_variables"
    if path.endswith("_graph.mindir") and not model.graph.parameter and os.path.isdir(variables):
        for name in sorted(os.listdir(variables)):
            part = mindir_pb2.GraphProto.FromString(_plain(os.path.join(variables, name), key, mode))
            model.graph.parameter.extend(part.parameter)


def _plain_weights(file: str, key: bytes | None, mode: str | Callable) -> Any:
    if key is not None:
        return _plain(file, key, mode)
    import numpy as np

    return memoryview(np.memmap(file, np.uint8, "r"))


def export(net, *inputs, file_name, file_format, **kwargs):
    """Writes a Cell or a function, as it computes for `inputs`, to a file; folders are made as needed.

    inputs: Tensors; sizes of None (`Tensor(shape=[None, 3], dtype=...)`) stay open. Whatever else `net` takes
    becomes part of the graph as it is.
    file_format: 'MINDIR', which adds the suffix .mindir; others when a package is installed that writes them.
    enc_key, enc_mode: encrypt the file (see `load`; a function is called with (bytes, key)).
    custom_func: gets the finished message, a ModelProto, and may change it.
    Weights beyond 1 GiB go to files beside it: NAME_graph.mindir and the folder NAME_variables.
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
    if file_format == "MINDIR":
        _export_mindir(net, inputs, file_name, **kwargs)
    else:
        _exporter(file_format)(net, *inputs, file_name=file_name, **kwargs)


def _export_mindir(
    net: Any,
    inputs: tuple,
    file_name: str,
    enc_key: bytes | None = None,
    enc_mode="AES-GCM",
    custom_func: Callable | None = None,
    **kwargs: Any,
) -> None:
    from mycelia.io.mindir.write import capture, to_model

    if enc_key is not None and not callable(enc_mode):
        crypto.check_key(enc_key, enc_mode, "enc")
    model = to_model(**capture(net, inputs))
    if custom_func is not None:
        custom_func(model)

    def encrypted(data: bytes) -> bytes:
        if enc_key is None:
            return data
        return enc_mode(data, enc_key) if callable(enc_mode) else crypto.encrypt(data, enc_key, enc_mode)

    path = os.path.realpath(file_name).removesuffix(".mindir")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if sum(len(p.raw_data) for p in model.graph.parameter) >> 10 > _SPLIT_KIB:
        _split_weights(model, path, encrypted)
        path += "_graph"
    with atomic_write(path + ".mindir", _READ_ONLY) as file:
        file.write(encrypted(model.SerializeToString()))


def _split_weights(model: Any, path: str, encrypted: Callable[[bytes], bytes]) -> None:
    """Moves the weights of a model to the file PATH_variables/data_0: a front of 64 bytes that begins with 1
    for little endian, then each, sorted by name and filled up to a multiple of 64 bytes.
    """
    folder = path + "_variables"
    os.makedirs(folder, exist_ok=True)
    with atomic_write(os.path.join(folder, "data_0"), _READ_ONLY) as file:
        file.write(encrypted(bytes([1]) + bytes(_ALIGNMENT - 1)))
        offset = _ALIGNMENT
        for proto in sorted(model.graph.parameter, key=lambda p: p.ref_key):
            data = proto.raw_data
            proto.ClearField("raw_data")
            place = proto.external_data
            place.location = f"{os.path.basename(folder)}/data_0"
            place.offset, place.length = offset, len(data)
            padded = data + bytes(-len(data) % _ALIGNMENT)
            file.write(encrypted(padded))
            offset += len(padded)


def _exporter(file_format: str) -> Callable:
    """The function of a plugin that writes another format (hook mycelia_exporters)."""
    from mycelia import plugins

    for exporters in plugins.manager().hook.mycelia_exporters():
        if file_format in exporters:
            return exporters[file_format]
    raise ValueError(f"For 'export', no installed package writes the format {file_format}.")
