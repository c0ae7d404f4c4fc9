"""What leader and agents send one another: messages of `mindspore.serving.proto` in frames of `rpc`."""

from __future__ import annotations

import numpy as np

from mycelia_serving.engine.loaders import ModelInput
from mycelia_serving.wire.proto import serving_pb2 as pb
from mycelia_serving.wire.tensors import number_type, read_tensor, wire_type

PING_S = 1.0
MISSED = 5  # so many seconds without a sign of life and an agent is dead
SILENCE_S = 20.0  # an agent that hears nothing of its leader for so long ends


def to_tensor(array: np.ndarray) -> pb.Tensor:
    """An array as a message."""
    message = pb.Tensor(dtype=wire_type(array.dtype), data=array.tobytes())
    message.shape.dims.extend(array.shape)
    return message


def to_array(message: pb.Tensor) -> np.ndarray:
    """The array in a message. Errors: RuntimeError if it is none."""
    value = read_tensor(message)
    if not isinstance(value, np.ndarray):
        raise RuntimeError("agents exchange numbers only")
    return value


def to_info(dtype: np.dtype, shape: tuple[int, ...]) -> pb.TensorInfo:
    """An input or output of a part of the model."""
    info = pb.TensorInfo(dtype=wire_type(dtype))
    info.shape.dims.extend(shape)
    return info


def to_input(number: int, info: pb.TensorInfo) -> ModelInput:
    """An input that an agent told of."""
    return ModelInput(f"input_{number}", number_type(info.dtype), tuple(info.shape.dims))


def failed(code: int, text: object) -> pb.ErrorMsg:
    """An error in a reply."""
    return pb.ErrorMsg(error_code=code, error_msg=str(text).encode())


def error_text(error: pb.ErrorMsg) -> str:
    """The text of an error in a reply; empty without one."""
    return error.error_msg.decode(errors="replace") or "it does not say why" if error.error_code else ""
