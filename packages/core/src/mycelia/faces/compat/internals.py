"""What scripts import of MindSpore's own helpers, in terms of what is here."""

from __future__ import annotations

import inspect
import os

import numpy as np

from mycelia import nn, ops, train
from mycelia.engine.base import dtypes
from mycelia.engine.tensors import initializer as initializers
from mycelia.engine.tensors.tensor import Tensor
from mycelia.train.amp import _CONFIG, _CastWithLossCell
from mycelia.train.loss_scale_manager import DynamicLossScaleManager

INT32_MAX = 2**31 - 1


# -- layers and optimizers


def opt_init_args_register(fn):
    """A decorator of an optimizer's ``__init__``: its arguments are kept as `init_params` and `init_args`."""

    def deco(self, *args, **kwargs):
        bound = inspect.signature(fn).bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(list(bound.arguments.items())[1:])
        if "params" in arguments:
            self.init_params = {"params": arguments.pop("params")}
        if "optimizer" in arguments:
            self.init_params = {"params": arguments.pop("optimizer").init_params["params"]}
        rate = arguments.get("learning_rate")
        if isinstance(rate, Tensor):
            arguments["learning_rate"] = rate.asnumpy().tolist()
        elif isinstance(rate, nn.Cell):
            arguments["learning_rate"] = 0.0
        self.init_args = arguments
        fn(self, *args, **kwargs)

    return deco


class VirtualDatasetCell(nn.Cell):
    """A network whose batches are spread over devices: here the network itself."""

    def __init__(self, backbone):
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs):
        return self._backbone(*inputs)


def fan_of(shape, mode: str):
    """`fan_in` or `fan_out` of a weight. Errors: ValueError for another mode and for vectors."""
    return initializers._he_fan(tuple(shape), mode.lower())


def gain(nonlinearity: str, param=None) -> float:
    """The factor of He's initializers; `param` is the slope of a leaky ReLU."""
    return initializers._gain(nonlinearity, 0.01 if param is None else param)


def assignment(arr, num):
    """`arr`, filled with `num`."""
    arr[...] = num
    return arr


def register_initializer(*aliases: str):
    """A decorator that makes an Initializer known by the name of its class and by these."""

    def register(cls):
        for alias in (cls.__name__.lower(), *aliases):
            initializers._ALIASES.setdefault(alias, cls)
        return cls

    return register


# -- gradients that are accumulated or looked at, as functions for HyperMap

gradient_accumulation_op = ops.MultitypeFuncGraph("gradient_accumulation_op")
gradient_clear_op = ops.MultitypeFuncGraph("gradient_clear_op")
grad_overflow = ops.MultitypeFuncGraph("grad_overflow")


@gradient_accumulation_op.register("Number", "Tensor", "Tensor")
def _accumulate(steps, total, grad):
    ops.assign_add(total, grad / steps)
    return total


@gradient_clear_op.register("Tensor")
def _clear(total):
    return ops.assign(total, ops.zeros_like(total))


@grad_overflow.register("Tensor")
def _overflow(grad):
    return 1.0 - ops.isfinite(grad).all().astype(dtypes.float32).reshape((1,))


# -- mixed precision and files

amp_levels = {
    level: {
        "keep_batchnorm_fp32": keep,
        "cast_model_type": dtype,
        "loss_scale_manager": DynamicLossScaleManager() if scaled else None,
    }
    for level, (dtype, keep, scaled) in _CONFIG.items()
}


def add_loss_network(network, loss_fn, cast_model_type):
    """`network` with its loss, which is computed in float32 where the network is not."""
    if not isinstance(loss_fn, nn.Cell):
        raise TypeError(f"loss_fn must be a Cell, but got {type(loss_fn).__name__}")
    short = cast_model_type in (dtypes.float16, dtypes.bfloat16)
    if short or getattr(network, "_amp_level", None) in ("O2", "O3", "auto"):
        return _CastWithLossCell(network, loss_fn)
    return nn.WithLossCell(network, loss_fn)


def update_param(param, new_param, strict_load: bool) -> None:
    """Give `param` the value of `new_param`.

    Errors: RuntimeError if shapes differ, or types that are not converted.
    """
    train.load_param_into_net(_Holder(param), {param.name: new_param}, strict_load)


class _Holder(nn.Cell):
    def __init__(self, param):
        super().__init__(auto_prefix=False)
        self.insert_param_to_cell(param.name.replace(".", "_"), param)


def make_directory(path: str, arg_name: str = "path") -> str:
    """The real path of a folder, which is made where it is missing. Errors: TypeError for what is no text."""
    if not isinstance(path, str) or not path.strip():
        raise TypeError(f"{arg_name} must be a text that is not empty, but got {path!r}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return os.path.realpath(path)


def merged_param_data(net, parameter_layout_dict, param_name, param_data, integrated_save):
    """The whole of a Parameter that is cut among devices: there is one device."""
    return param_data


# -- transforms of data sets


class TensorOperation:
    """Base of users' transforms: a call is ``_execute_py``."""

    def __init__(self):
        self.implementation = None
        self.output_type = None

    def __call__(self, *values):
        return self._execute_py(*values)


augment_error_message = "img should be PIL image. Got {}."


def is_pil(img) -> bool:
    """Whether this is an image of PIL."""
    from PIL import Image

    return isinstance(img, Image.Image)


def is_numpy(img) -> bool:
    """Whether this is an array."""
    return isinstance(img, np.ndarray)


def hwc_to_chw(img):
    """[H, W, C] -> [C, H, W]; [H, W] stays. Errors: TypeError for other values."""
    if not is_numpy(img) or img.ndim not in (2, 3):
        raise TypeError(f"img should be NumPy array of rank 2 or 3. Got {type(img)}.")
    return img if img.ndim == 2 else img.transpose(2, 0, 1).copy()


class LogActionOnce:
    """A decorator under which `logger` warns once for each `key`, and then no more."""

    seen: set[str] = set()

    def __init__(self, logger, key: str, no_warning: bool = False) -> None:
        self._logger, self._key, self._silent = logger, key, no_warning

    def __call__(self, func):
        def wrapper(*args, **kwargs):
            warning = getattr(self._logger, "warning", None)
            if warning is None:
                return func(*args, **kwargs)
            if self._silent or self._key in self.seen:
                self._logger.warning = lambda *a, **k: None
            self.seen.add(self._key)
            try:
                return func(*args, **kwargs)
            finally:
                self._logger.warning = warning

        return wrapper
