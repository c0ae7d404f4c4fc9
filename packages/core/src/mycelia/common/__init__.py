"""`mycelia.common`: the path under which MindSpore scripts find initializers, dtypes and tensors."""

from __future__ import annotations

import importlib

_HOMES = {
    "Tensor": "mycelia.tensor", "Parameter": "mycelia.tensor", "ParameterTuple": "mycelia.tensor",
    "dtype": "mycelia.dtypes", "initializer": "mycelia.common.initializer", "set_seed": "mycelia.config",
    "get_seed": "mycelia.config",
}  # fmt: skip


def __getattr__(name: str):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'mycelia.common' has no attribute {name!r}")
    module = importlib.import_module(home)
    return getattr(module, name, module) if name not in ("dtype", "initializer") else module
