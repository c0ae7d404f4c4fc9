"""`GraphCell`: a network loaded from MindIR as a Cell."""

from __future__ import annotations

from mycelia.engine import _C, dispatch
from mycelia.engine.base import errors, ignored
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell


class GraphCell(Cell):
    """A network loaded from MindIR: call it as the exported one was called.

    `graph`: what `mycelia.load` returns; `params_init`: name -> Tensor or Parameter that replaces a stored
    value; `obf_random_seed` has no effect, as a warning says. Raises TypeError for another kind of graph.
    """

    @ignored.arguments(obf_random_seed="graphs are not obfuscated")
    def __init__(self, graph, params_init: dict | None = None, obf_random_seed=None):
        super().__init__(auto_prefix=False)
        if not hasattr(graph, "parameters") or not callable(graph):
            raise errors.type_error(
                "GraphCell", f"graph must come from mycelia.load, but got {type(graph).__name__}"
            )
        self.__dict__["graph"] = graph
        given = {} if params_init is None else params_init
        if not isinstance(given, dict):
            raise errors.type_error(
                "GraphCell", f"the argument 'params_init' must be a dict, but got {type(given).__name__}"
            )
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, Tensor):
                raise errors.type_error(
                    "GraphCell", "the keys of 'params_init' must be str, and the values Tensors or Parameters"
                )
        for name, parameter in graph.parameters.items():
            if name in given:
                value = given[name]
                if (value.shape, value.dtype) != (parameter.shape, parameter.dtype):
                    raise errors.value_error(
                        "GraphCell",
                        f"'{name}' is {parameter.dtype} of shape {parameter.shape}, but params_init has "
                        f"{value.dtype} of shape {value.shape}. Only support update parameter by Tensor or "
                        "Parameter with same shape and dtype as it",
                    )
                parameter.set_data(value)
            self._params[name] = parameter

    def _call_detour(self, args: tuple, kwargs: dict):
        if getattr(self.graph, "has_branches", False) and not _C.mode() & dispatch.TRACING:
            # graph mode cannot capture it: its loops are calls that end in one another
            return self._run(args, kwargs)
        return super()._call_detour(args, kwargs)

    def construct(self, *inputs):
        return self.graph(*inputs)
