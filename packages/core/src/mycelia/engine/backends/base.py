"""The contract of a backend: one class, of which only `name` and `kernels` must be written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mycelia.engine import _C
from mycelia.engine.base.dtypes import DType
from mycelia.engine.ir.graph import Graph


def include_dir() -> Path:
    """The directory of `mycelia/abi.h` and `mycelia/op_attrs.h`, for compiling native kernels."""
    return Path(_C.__file__).parent / "include"


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of a pipeline: `run` changes a graph in place and returns the number of changes.

    `before`, `after`: where a step that a backend brings (`Backend.passes`) takes its place: in front of the
    first step of that name, behind the last one, or without either at the end.
    """

    name: str
    run: Callable[[Graph], int]
    before: str = ""
    after: str = ""


class Backend:
    """A device that runs kernels on the host's memory. Everything but `name` and `kernels` has a default."""

    #: What `set_context(device_target=...)` calls it, in lower case.
    name = ""

    #: dtypes that run as another one where no kernel exists: ``{bfloat16: float32}``.
    emulated: dict[DType, DType] = {}

    #: Whether the kernels of ops with a `data_format` take "NHWC" too. The compiler lays images out with the
    #: channels last only then, and only if there are kernels for `ops/lowered/channels_last.py`.
    channels_last = False

    def kernels(self):
        """The kernels: a capsule named ``mycelia.kernel_table`` holding a `myc_kernel_table` (abi.h),
        or a dict.

        Dict: ``{("mat_mul", "f32"): function}``; the dtypes text is as in abi.h; the function takes one NumPy
        array per tensor input (None for an absent one, a tuple for a list; float32 for bfloat16) and the
        attributes by keyword, and returns an array or a tuple of them.
        """
        return {}

    def set_threads(self, count: int) -> None:
        """Let kernels use up to `count` host threads (0: the backend's choice)."""

    def set_deterministic(self, on: bool) -> None:
        """Let results depend on nothing but the inputs, not on the number of threads either. A backend whose
        results are such anyway has nothing to do."""

    def passes(self, stable: Collection[int]) -> Sequence[Pass]:
        """Steps of its own in the stage "lower", for graphs that are compiled for this backend.

        `stable`: positions of parameters that seldom change; what depends on nothing else is computed only
        when they do. A step may be one object for all compiles: it gets the graph, a copy that it may change.
        """
        return ()

    def choose_convolution(
        self,
        x: Sequence[int],
        channels: int,
        kernel: Sequence[int],
        *,
        stride: Sequence[int],
        pad: Sequence[int],
        dilation: Sequence[int],
        group: int,
        strict: bool,
        constant: bool = True,
    ) -> str:
        """The `algorithm` of a channels-last convolution of images `x` [N, H, W, I] to `channels` outputs.

        `strict`: none that rounds worse than a plain sum, such as Winograd's. `constant`: the weights are
        packed once for many runs; otherwise in every run, and that counts too.
        """
        return "depthwise" if group == channels == x[3] else "direct"

    def choose_product(self, rows: int, columns: int, depth: int, *, strict: bool) -> str:
        """ "plain" or "strassen" for `rows` x `depth` times constant weights, `depth` x `columns`.

        `strict`: nothing that rounds worse than a plain sum. Sizes below 0 are not known.
        """
        return "plain"

    def multiply_adds(self, rounds: int) -> float:
        """Do `rounds` rounds of multiply-adds with everything in registers, on the calling thread.

        Returns how many floating-point operations that were, 0 if the backend cannot. The profiler measures
        peaks with it.
        """
        return 0.0
