"""What a conversion is asked for: one table of options for the command line and configuration files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.enums import DataType, Format, ModelType
from mycelia_lite.quant.settings import Quantization

LARGEST_SIZE = 2**31 - 1  # of an axis of a tensor in a .ms file
_MOST_BYTES = 2**31 - 1  # of a FlatBuffers file: its offsets are signed in some readers


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a model is converted; everything at its default keeps the borders of the source.

    input_shape: sizes by name, -1 for open ones. input_format, output_format: layout of borders of rank 4.
    input_data_type, output_data_type: of all borders. encrypt_key: 16 bytes, empty for none.
    tolerance: how far an output may depart when it is checked, 0 for what is usual.
    signature: the entry point of a TFLITE file that is converted, "" for its primary graph.
    weights_apart: bytes of a file above which its weights go to a file beside it.
    pack_weights: weights lie in the file as kernels read them, for this runtime alone.
    optimize_transformer: attention becomes one node, for this runtime alone.
    save_type: the kind of file that is written, MINDIR_LITE (.ms) or MINDIR.
    quantization: how weights, or weights and data, have fewer bits, None for none.
    train: the model is a training step, and the file one to train on.
    """

    input_shape: Mapping[str, Sequence[int]] = field(default_factory=dict)
    input_format: Format | None = None
    output_format: Format | None = None
    input_data_type: DataType | None = None
    output_data_type: DataType | None = None
    weight_fp16: bool = False
    weight_bf16: bool = False
    without_fusions: Collection[str] = ()
    optimize: str = "general"
    optimize_transformer: bool = False
    infer: bool = False
    check: bool = False
    tolerance: float = 0.0
    encrypt_key: bytes = b""
    decrypt_key: bytes = b""
    decrypt_mode: str = "AES-GCM"
    weights_apart: int = _MOST_BYTES
    pack_weights: bool = False
    signature: str = ""
    save_type: ModelType = ModelType.MINDIR_LITE
    quantization: Quantization | None = None
    train: bool = False


def invalid(name: str, expected: str, text: str) -> ConversionError:
    """An error about the value of an option."""
    return ConversionError(Code.INPUT_PARAM_INVALID, f"{name} must be {expected}, but got {text!r}")


def parse_shapes(text: str, name: str = "inputShape") -> dict[str, list[int]]:
    """``"a:1,3,8,8;b:1,4"`` as shapes by name; a name may itself hold a colon.

    Errors: ConversionError for what is no such text.
    """
    shapes: dict[str, list[int]] = {}
    for part in filter(None, text.split(";")):
        border, colon, sizes = part.rpartition(":")
        try:
            found = [int(n) for n in sizes.split(",")]
        except ValueError:
            found = []
        if not colon or not border or not found or border in shapes or any(n == 0 or n < -1 for n in found):
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"{name} must be like 'name:1,3,8,8;other:1,4', but has {part!r}"
            )
        if max(found) > LARGEST_SIZE:
            raise invalid(name, f"sizes up to {LARGEST_SIZE}, as .ms files hold them", part)
        shapes[border] = found
    return shapes


def switch(text: str, name: str) -> bool:
    """on, true or off, false."""
    if text not in ("on", "true", "off", "false"):
        raise invalid(name, "on or off", text)
    return text in ("on", "true")


def layout(text: str, name: str) -> Format:
    if text not in ("NHWC", "NCHW"):
        raise invalid(name, "NHWC or NCHW", text)
    return Format[text]


_TYPES = {"FLOAT": DataType.FLOAT32, "DEFAULT": None} | {
    name: DataType[name] for name in ("FLOAT32", "FLOAT16", "INT8", "UINT8", "INT32", "INT64")
}


def data_type(text: str, name: str) -> DataType | None:
    if text not in _TYPES:
        raise invalid(name, f"one of {', '.join(_TYPES)}", text)
    return _TYPES[text]


def key_of(text: str, name: str) -> bytes:
    """A key of 16, 24 or 32 bytes, given as hexadecimal digits."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) not in (16, 24, 32) or len(text) != 2 * len(key):
        # the key itself is not repeated: it would end in a log
        raise ConversionError(
            Code.INPUT_PARAM_INVALID,
            f"{name} must be 32, 48 or 64 hexadecimal digits, but got {len(text)} characters",
        )
    return key


def _decrypt_mode(text: str, name: str) -> str:
    if text not in ("AES-GCM", "AES-CBC"):
        raise invalid(name, "AES-GCM or AES-CBC", text)
    return text


def _optimize(text: str, name: str) -> str:
    kind = text.partition(":")[0]
    if kind in ("gpu_oriented", "ascend_oriented"):
        raise NotAvailable(f"{name}={text}: there are no passes for that device, only none and general")
    if text not in ("none", "general"):
        raise invalid(name, "none, general, gpu_oriented or ascend_oriented", text)
    return text


def _save_type(text: str, name: str) -> ModelType:
    if text not in ("MINDIR_LITE", "MINDIR"):
        raise invalid(name, "MINDIR_LITE or MINDIR", text)
    return ModelType[text]


def names_of(text: str, name: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def _absent(what: str) -> Callable[[str, str], None]:
    def read(text: str, name: str) -> None:
        raise NotAvailable(f"{name}={text}: {what}")

    return read


def _bytes(text: str, name: str) -> int:
    if not text.isdecimal():
        raise invalid(name, "a number of bytes", text)
    return int(text)


def _tolerance(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise invalid(name, "a number above 0", text)
    return number


#: Option of the command line -> its field of `Options`, None if it is only checked, and its reader.
READERS: dict[str, tuple[str | None, Callable[[str, str], Any]]] = {
    "inputShape": ("input_shape", parse_shapes),
    "inputDataFormat": ("input_format", layout),
    "outputDataFormat": ("output_format", layout),
    "inputDataType": ("input_data_type", data_type),
    "outputDataType": ("output_data_type", data_type),
    "fp16": ("weight_fp16", switch),
    "bf16": ("weight_bf16", switch),
    "trainModel": ("train", switch),
    "saveType": ("save_type", _save_type),
    "optimize": ("optimize", _optimize),
    "optimizeTransformer": ("optimize_transformer", switch),
    "infer": ("infer", switch),
    "check": ("check", switch),
    "tolerance": ("tolerance", _tolerance),
    "encryption": (None, switch),
    "encryptKey": ("encrypt_key", key_of),
    "decryptKey": ("decrypt_key", key_of),
    "decryptMode": ("decrypt_mode", _decrypt_mode),
    "device": (None, _absent("there are no passes for other devices than the processor")),
    "weightsApart": ("weights_apart", _bytes),
    "packWeights": ("pack_weights", switch),
    "signature": ("signature", lambda text, name: text),
    "withoutFusions": ("without_fusions", names_of),
}


def from_texts(texts: Mapping[str, str], **more: Any) -> Options:
    """Options as they stand on the command line or in a file, by their names there.

    `more`: fields that are set already. Errors: ConversionError that names the option.
    """
    found = {}
    for name, text in texts.items():
        target, read = READERS[name]
        value = read(text, name)
        if target is not None:
            found[target] = value
    encryption = texts.get("encryption")
    if encryption is not None:
        if switch(encryption, "encryption") and "encrypt_key" not in found:
            raise ConversionError(Code.INPUT_PARAM_INVALID, "encryption=true needs an encryptKey")
        if not switch(encryption, "encryption"):
            found.pop("encrypt_key", None)
    return Options(**(more | found))
