"""Primitives that run on Ascend only: here they can be made and printed; a call says what would run them."""

import inspect
from typing import Any

from mycelia.engine.base import errors
from mycelia.ops.primitives.checks import anything
from mycelia.ops.primitives.define import Operation, register

_NONE = inspect.Parameter.empty
_ONE_WAY = dict(direction="UNIDIRECTIONAL", cell_depth=1)
_CLIPPED = dict(keep_prob=1.0, cell_clip=-1.0, num_proj=0, time_major=True, activation="tanh")

#: Class -> its constants with their defaults.
_CONSTANTS: dict[str, dict[str, Any]] = {
    "ApplyRotaryPosEmb": dict(cos_format=0),
    "BasicLSTMCell": dict(keep_prob=1.0, forget_bias=1.0, state_is_tuple=True, activation="tanh"),
    "DynamicGRUV2": dict(**_ONE_WAY, **_CLIPPED, gate_order="rzh", reset_after=True, is_training=True),
    "DynamicRNN": dict(
        cell_type="LSTM", **_ONE_WAY, use_peephole=False, **_CLIPPED, forget_bias=0.0, is_training=True
    ),
    "ExtractGlimpse": dict(centered=True, normalized=True, uniform_noise=True, noise="uniform"),
    "NPUAllocFloatStatus": {},
    "NPUClearFloatStatus": {},
    "NPUGetFloatStatus": {},
    "PagedAttention": dict(
        head_num=_NONE, scale_value=_NONE, kv_head_num=_NONE, kv_cache_quant_mode="DEFAULT",
        mask_mode="MASK_DEFAULT", mla_v_dim=0,
    ),
    "PagedAttentionMask": dict(
        head_num=_NONE, scale_value=_NONE, kv_head_num=_NONE, kv_cache_quant_mode="DEFAULT"
    ),
    "ReshapeAndCache": {},
    "RNNTLoss": dict(blank_label=0),
}  # fmt: skip


class _AscendOnly(Operation):
    def __call__(self, *inputs, **named):
        name = type(self).__name__
        raise errors.error(errors.NotSupportedError, name, "this operator runs on Ascend only, not on CPU")


for _name, _constants in _CONSTANTS.items():
    _signature = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for key, default in _constants.items()
        ]
    )
    register(
        type(
            _name,
            (_AscendOnly,),
            {
                "__doc__": "An operator that runs on Ascend only.",
                "__module__": __name__,
                "__signature__": _signature,
                "_constants": _signature,
                "_checks": dict.fromkeys(_constants, anything),
                "_shown": {},
                "_extra": {},
            },
        )
    )
