"""The CPU backend: the native kernel library behind core's backend contract."""

from __future__ import annotations

from mycelia.backends import Backend, Pass


class CpuBackend(Backend):
    """Kernels on the host's processor; memory is the host's: copying is core's default."""

    name = "cpu"
    channels_last = True

    def kernels(self):
        """The native kernel table, as a capsule that core reads without further Python."""
        from mycelia_backend_cpu import _native

        return _native.kernel_table()

    def passes(self, frozen):
        """The choice among algorithms of convolutions and products, by estimates of cycles."""
        from mycelia_backend_cpu import convolution, product

        return (
            Pass("winograd", convolution.run, after="layout"),
            Pass("strassen", product.run, after="matmul"),
        )

    def set_threads(self, count: int) -> None:
        """Let kernels use up to `count` threads; 0 means as many as the process has cores."""
        from mycelia_backend_cpu import _native

        _native.set_threads(count)

    def limit_threads(self, count: int) -> int:
        """Let kernels of the calling thread use up to `count` threads; returns the limit before, 0: none."""
        from mycelia_backend_cpu import _native

        return _native.limit_threads(count)

    def set_deterministic(self, on: bool) -> None:
        """Divide the work of kernels alike for any number of threads."""
        from mycelia_backend_cpu import _native

        _native.set_deterministic(on)

    def multiply_adds(self, rounds: int) -> float:
        """Rounds of multiply-adds in vector registers; returns the number of operations."""
        from mycelia_backend_cpu import _native

        return _native.multiply_adds(rounds)
