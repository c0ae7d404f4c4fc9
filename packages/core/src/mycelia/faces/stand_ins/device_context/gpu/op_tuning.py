"""Algorithms of convolutions on GPUs."""

from mycelia.faces.stand_ins.device_context.checks import tell

_FORWARD = (
    "normal", "performance", "implicit_gemm", "precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
    "winograd",
    "winograd_nonfused",
)  # fmt: skip
_DATA = ("normal", "performance", "algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused")
_WEIGHTS = ("normal", "performance", "algo_0", "algo_1", "fft", "algo_3", "fft_tiling", "winograd_nonfused")


def conv_fprop_algo(mode: str) -> None:
    """The algorithm of convolutions."""
    tell("gpu.op_tuning.conv_fprop_algo", "mode", mode, str, _FORWARD)


def conv_dgrad_algo(mode: str) -> None:
    """The algorithm of their gradient for the input."""
    tell("gpu.op_tuning.conv_dgrad_algo", "mode", mode, str, _DATA)


def conv_wgrad_algo(mode: str) -> None:
    """The algorithm of their gradient for the weights."""
    tell("gpu.op_tuning.conv_wgrad_algo", "mode", mode, str, _WEIGHTS)
