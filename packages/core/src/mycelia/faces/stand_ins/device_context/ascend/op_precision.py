"""Settings that trade precision for speed on Ascend."""

from mycelia.faces.stand_ins.device_context.checks import tell

_MODES = (
    "force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "must_keep_origin_dtype", "force_fp32",
    "allow_fp32_to_bf16", "allow_mix_precision_fp16", "allow_mix_precision_bf16",
)  # fmt: skip


def precision_mode(mode: str) -> None:
    """Which dtypes ops may use instead of the given ones."""
    tell("ascend.op_precision.precision_mode", "mode", mode, str, _MODES)


def op_precision_mode(path: str) -> None:
    """A file that gives the mode of single ops."""
    tell("ascend.op_precision.op_precision_mode", "path", path, str)


def matmul_allow_hf32(value: bool) -> None:
    """Whether products may round their inputs to 19 bits."""
    tell("ascend.op_precision.matmul_allow_hf32", "value", value, bool)


def conv_allow_hf32(value: bool) -> None:
    """Whether convolutions may round their inputs to 19 bits."""
    tell("ascend.op_precision.conv_allow_hf32", "value", value, bool)
