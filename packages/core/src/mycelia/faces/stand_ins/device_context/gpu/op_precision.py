"""Settings that trade precision for speed on GPUs."""

from mycelia.faces.stand_ins.device_context.checks import tell


def matmul_allow_tf32(value: bool) -> None:
    """Whether products may round their inputs to 19 bits."""
    tell("gpu.op_precision.matmul_allow_tf32", "value", value, bool)


def conv_allow_tf32(value: bool) -> None:
    """Whether convolutions may round their inputs to 19 bits."""
    tell("gpu.op_precision.conv_allow_tf32", "value", value, bool)
