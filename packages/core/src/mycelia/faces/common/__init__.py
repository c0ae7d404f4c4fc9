"""`mycelia.common`: the path under which MindSpore scripts find initializers, dtypes and tensors."""

from __future__ import annotations

import importlib

_HOMES = {
    **dict.fromkeys(("Tensor", "Parameter", "ParameterTuple"), "mycelia.engine.tensors.tensor"),
    **dict.fromkeys(("set_seed", "get_seed"), "mycelia.engine.base.config"),
    "dtype": "mycelia.engine.base.dtypes",
    "initializer": "mycelia.engine.tensors.initializer",
}


def __getattr__(name: str):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mycelia.common' has no attribute {name!r}")
    module = importlib.import_module(home)
    return getattr(module, name, module) if name not in ("dtype", "initializer") else module
