"""How a model is to run: threads."""

from __future__ import annotations


class _Cpu:
    """Settings of the processor's kernels."""

    def __init__(self) -> None:
        self._threads = 1

    @property
    def thread_num(self) -> int:
        """Threads of a run, the caller's included.  Errors: TypeError, ValueError unless it is 1 or more."""
        return self._threads

    @thread_num.setter
    def thread_num(self, count: int) -> None:
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"thread_num must be an int, but got {type(count).__name__}")
        if count < 1:
            raise ValueError(f"thread_num must be at least 1, but got {count}")
        self._threads = count


class Context:
    """How a model is to run; `target` may name "cpu" alone so far."""

    def __init__(self) -> None:
        self.cpu = _Cpu()
        self._target = ["cpu"]

    @property
    def target(self) -> list[str]:
        """Devices in order of preference.  Errors: ValueError for another one than "cpu"."""
        return self._target

    @target.setter
    def target(self, names: list[str]) -> None:
        if list(names) != ["cpu"]:
            raise ValueError(f"target must be ['cpu'], the only device so far, but got {names!r}")
        self._target = list(names)
