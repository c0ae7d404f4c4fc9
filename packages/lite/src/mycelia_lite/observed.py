"""Functions of Python that the runtime calls around nodes."""

from __future__ import annotations

from collections.abc import Callable

from mycelia_lite import runtime
from mycelia_lite.tensor import Tensor

CallBack = Callable[[list, list, str, str], bool]  # inputs, outputs, name and type of a node


class Observed:
    """While it lasts, `native` are `before` and `after` for the library; what they raise is raised then."""

    def __init__(self, before: CallBack | None, after: CallBack | None) -> None:
        self._calls = [_Call(before, "before"), _Call(after, "after")]
        self.native = [call.native for call in self._calls]

    def __enter__(self) -> Observed:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for call in self._calls:
            if call.raised is not None:
                raise call.raised


class _Call:
    """A callback as the library calls it; what it raises ends the run and is kept."""

    def __init__(self, function: CallBack | None, name: str) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, but got {type(function).__name__}")
        self.raised: BaseException | None = None
        self._function = function
        self.native = None if function is None else runtime.NodeCallBack(self._run)

    def _run(self, user: object, inputs: object, outputs: object, node: object) -> bool:
        try:
            tensors = [[Tensor._of(h, self) for h in array.list()] for array in (inputs, outputs)]
            return bool(self._function(*tensors, runtime.text(node.node_name), runtime.text(node.node_type)))
        except BaseException as error:  # told when the library has returned
            self.raised = error
            return False
