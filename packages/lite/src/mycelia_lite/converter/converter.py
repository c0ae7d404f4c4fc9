"""MindSpore Lite's converter as a class: properties, then `convert`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from mycelia_lite.converter import config
from mycelia_lite.converter.convert import Job, Report, run, with_fusions
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.options import LARGEST_SIZE, Options
from mycelia_lite.enums import DataType, FmkType, Format, ModelType
from mycelia_lite.quant import Quantization

_BORDER_TYPES = tuple(DataType[n] for n in ("FLOAT32", "FLOAT16", "INT8", "UINT8", "INT32", "INT64"))


def _is_a(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise TypeError(f"{name} must be a {kind.__name__}, but got {type(value).__name__}")


class Converter:
    """A conversion with its options; what is not set keeps the borders and types of the source.

    Properties raise TypeError and ValueError that name them, NotImplementedError for what is not there.
    """

    def __init__(self) -> None:
        self._options = Options()
        self._sections: dict[str, dict[str, str]] = {}
        self._encrypts: bool | None = None

    def _set(self, **fields: Any) -> None:
        self._options = replace(self._options, **fields)

    @property
    def input_shape(self) -> dict[str, list[int]]:
        """Shapes of inputs by name; -1 leaves a size open."""
        return {name: list(sizes) for name, sizes in self._options.input_shape.items()}

    @input_shape.setter
    def input_shape(self, shapes: dict[str, list[int]]) -> None:
        _is_a("input_shape", shapes, dict)
        for name, sizes in shapes.items():
            if not isinstance(name, str) or not isinstance(sizes, list | tuple):
                raise TypeError(f"input_shape must have names and lists of int, but got {name!r}: {sizes!r}")
            if not all(type(n) is int for n in sizes):
                raise TypeError(f"input_shape must have names and lists of int, but got {name!r}: {sizes!r}")
            if any(n == 0 or n < -1 or n > LARGEST_SIZE for n in sizes):
                raise ValueError(
                    f"input_shape must have sizes of 1 to {LARGEST_SIZE}, or -1, but got {name!r}: {sizes!r}"
                )
        self._set(input_shape={name: list(sizes) for name, sizes in shapes.items()})

    @property
    def input_format(self) -> Format | None:
        """Layout of inputs of rank 4; None: as in the source."""
        return self._options.input_format

    @input_format.setter
    def input_format(self, layout: Format | None) -> None:
        self._set(input_format=self._layout("input_format", layout))

    @property
    def output_format(self) -> Format | None:
        """Layout of outputs of rank 4; None: as in the source."""
        return self._options.output_format

    @output_format.setter
    def output_format(self, layout: Format | None) -> None:
        self._set(output_format=self._layout("output_format", layout))

    @staticmethod
    def _layout(name: str, layout: Format | None) -> Format | None:
        if layout is not None:
            _is_a(name, layout, Format)
            if layout not in (Format.NCHW, Format.NHWC):
                raise ValueError(f"{name} must be Format.NCHW or Format.NHWC, but got {layout.name}")
        return layout

    @property
    def input_data_type(self) -> DataType | None:
        """Data type of the inputs; None: as in the source."""
        return self._options.input_data_type

    @input_data_type.setter
    def input_data_type(self, dtype: DataType | None) -> None:
        self._set(input_data_type=self._data_type("input_data_type", dtype))

    @property
    def output_data_type(self) -> DataType | None:
        """Data type of the outputs; None: as in the source."""
        return self._options.output_data_type

    @output_data_type.setter
    def output_data_type(self, dtype: DataType | None) -> None:
        self._set(output_data_type=self._data_type("output_data_type", dtype))

    @staticmethod
    def _data_type(name: str, dtype: DataType | None) -> DataType | None:
        if dtype is not None:
            _is_a(name, dtype, DataType)
            if dtype not in _BORDER_TYPES:
                names = ", ".join(t.name for t in _BORDER_TYPES)
                raise ValueError(f"{name} must be one of {names}, but got {dtype.name}")
        return dtype

    @property
    def weight_fp16(self) -> bool:
        """Whether float32 constants are stored as float16."""
        return self._options.weight_fp16

    @weight_fp16.setter
    def weight_fp16(self, on: bool) -> None:
        _is_a("weight_fp16", on, bool)
        self._set(weight_fp16=on)

    @property
    def weight_bf16(self) -> bool:
        """Whether float32 constants are stored as bfloat16: their range, 8 bits of them, for this runtime."""
        return self._options.weight_bf16

    @weight_bf16.setter
    def weight_bf16(self, on: bool) -> None:
        _is_a("weight_bf16", on, bool)
        self._set(weight_bf16=on)

    @property
    def pack_weights(self) -> bool:
        """Whether weights lie in the file as kernels read them: a shorter load, by this runtime alone."""
        return self._options.pack_weights

    @pack_weights.setter
    def pack_weights(self, on: bool) -> None:
        _is_a("pack_weights", on, bool)
        self._set(pack_weights=on)

    @property
    def quantization(self) -> Quantization | None:
        """How weights, or weights and data, get fewer bits; None: not at all. A configuration wins."""
        return self._options.quantization

    @quantization.setter
    def quantization(self, how: Quantization | None) -> None:
        if how is not None and not isinstance(how, Quantization):
            kinds = ", ".join(kind.__name__ for kind in get_args(Quantization))
            raise TypeError(f"quantization must be one of {kinds}, but got {type(how).__name__}")
        self._set(quantization=how)

    @property
    def optimize_transformer(self) -> bool:
        """Whether attention becomes one node, for this runtime alone."""
        return self._options.optimize_transformer

    @optimize_transformer.setter
    def optimize_transformer(self, on: bool) -> None:
        _is_a("optimize_transformer", on, bool)
        self._set(optimize_transformer=on)

    @property
    def save_type(self) -> ModelType:
        """The kind of file that is written: ModelType.MINDIR_LITE (.ms), or MINDIR for MindSpore and core."""
        return self._options.save_type

    @save_type.setter
    def save_type(self, kind: ModelType) -> None:
        _is_a("save_type", kind, ModelType)
        if kind not in (ModelType.MINDIR_LITE, ModelType.MINDIR):
            raise ValueError(f"save_type must be MINDIR_LITE or MINDIR, but got {kind.name}")
        self._set(save_type=kind)

    @property
    def optimize(self) -> str:
        """ "general", or "none" for a model without fusions."""
        return self._options.optimize

    @optimize.setter
    def optimize(self, kind: str) -> None:
        _is_a("optimize", kind, str)
        if kind.partition(":")[0] in ("gpu_oriented", "ascend_oriented"):
            raise NotAvailable(f"optimize: there are no passes for {kind}, only none and general")
        if kind not in ("none", "general"):
            raise ValueError(
                f"optimize must be none, general, gpu_oriented or ascend_oriented, but got {kind!r}"
            )
        self._set(optimize=kind)

    @property
    def infer(self) -> bool:
        """Whether the result is run once before it is written."""
        return self._options.infer

    @infer.setter
    def infer(self, on: bool) -> None:
        _is_a("infer", on, bool)
        self._set(infer=on)

    @property
    def device(self) -> str:
        """The device whose own passes run: "" for none."""
        return ""

    @device.setter
    def device(self, name: str) -> None:
        _is_a("device", name, str)
        if name:
            raise NotAvailable(f"device: there are no passes for {name}")

    @property
    def enable_encryption(self) -> bool:
        """Whether the file is encrypted: by default if there is an `encrypt_key`."""
        return bool(self._options.encrypt_key) if self._encrypts is None else self._encrypts

    @enable_encryption.setter
    def enable_encryption(self, on: bool) -> None:
        _is_a("enable_encryption", on, bool)
        self._encrypts = on

    @property
    def encrypt_key(self) -> str:
        """The key of the file that is written, as hexadecimal digits; "" for none."""
        return self._options.encrypt_key.hex()

    @encrypt_key.setter
    def encrypt_key(self, key: str) -> None:
        self._set(encrypt_key=self._key("encrypt_key", key))

    @property
    def decrypt_key(self) -> str:
        """The key of an encrypted MindIR, as hexadecimal digits; "" for none."""
        return self._options.decrypt_key.hex()

    @decrypt_key.setter
    def decrypt_key(self, key: str) -> None:
        self._set(decrypt_key=self._key("decrypt_key", key))

    @staticmethod
    def _key(name: str, text: str) -> bytes:
        _is_a(name, text, str)
        try:
            key = bytes.fromhex(text)
        except ValueError:
            raise ValueError(f"{name} must be hexadecimal digits") from None
        if text and len(key) not in (16, 24, 32):
            raise ValueError(f"{name} must be of 16, 24 or 32 bytes, but has {len(key)}")
        return key

    @property
    def decrypt_mode(self) -> str:
        """How the MindIR is encrypted: AES-GCM or AES-CBC."""
        return self._options.decrypt_mode

    @decrypt_mode.setter
    def decrypt_mode(self, mode: str) -> None:
        _is_a("decrypt_mode", mode, str)
        if mode not in ("AES-GCM", "AES-CBC"):
            raise ValueError(f"decrypt_mode must be AES-GCM or AES-CBC, but got {mode!r}")
        self._set(decrypt_mode=mode)

    @property
    def signature(self) -> str:
        """The entry point of a TFLITE file that is converted; "": its primary graph."""
        return self._options.signature

    @signature.setter
    def signature(self, name: str) -> None:
        _is_a("signature", name, str)
        self._set(signature=name)

    def set_config_info(self, section: str = "", config_info: Mapping[str, str] | None = None) -> None:
        """What a section of a configuration file would say; it takes the place of an earlier one.

        Errors: TypeError; ValueError for unknown sections, keys and values; NotImplementedError.
        """
        _is_a("section", section, str)
        values = {} if config_info is None else config_info
        _is_a("config_info", values, dict)
        for key, value in values.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"config_info must have str keys and values, but got {key!r}: {value!r}")
        if section == "model_param":
            raise ValueError("section: [model_param] is of configuration files, convert has arguments for it")
        try:
            config.enter(config.Config(), section, values, "config_info")
        except NotAvailable:
            raise
        except ConversionError as error:
            raise ValueError(error.args[0]) from None
        self._sections[section] = dict(values)

    def get_config_info(self) -> dict[str, dict[str, str]]:
        """The sections that were set."""
        return {section: dict(values) for section, values in self._sections.items()}

    def convert(
        self,
        fmk_type: FmkType,
        model_file: Any,
        output_file: str,
        weight_file: str = "",
        config_file: str = "",
    ) -> Report:
        """Convert a model file; `output_file` gets the suffix `.ms` (`.mindir`).

        model_file: its path; with FmkType.PYTORCH also a `torch.export.ExportedProgram`.
        weight_file: of a model of CAFFE. config_file: sections of MindSpore Lite's converter; what
        `set_config_info` says wins.

        Errors: TypeError for arguments of other types, ConversionError (a RuntimeError) with the code and the
        reason; NotImplementedError for what is not there.
        """
        _is_a("fmk_type", fmk_type, FmkType)
        given = {"model_file": model_file, "output_file": output_file}
        if fmk_type is FmkType.PYTORCH and hasattr(model_file, "graph_signature"):
            del given["model_file"]
        for name, value in (given | {"weight_file": weight_file, "config_file": config_file}).items():
            _is_a(name, value, str)
        settings = config.read(config_file) if config_file else config.Config()
        if settings.models:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID,
                f"config_file: [model_param] is for the command line, but {config_file} has it",
            )
        for section, values in self._sections.items():
            config.enter(settings, section, values, "config_info")
        options = with_fusions(self._options, settings)
        if self._encrypts is False:
            options = replace(options, encrypt_key=b"")
        elif self._encrypts and not options.encrypt_key:
            raise ValueError("enable_encryption needs an encrypt_key")
        return run(Job(fmk_type, model_file, output_file, weight_file, options))
