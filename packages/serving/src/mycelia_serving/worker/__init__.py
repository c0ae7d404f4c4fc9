"""Start a worker, as MindSpore Serving 1.1 does; `register` for `servable_config.py` is here, too."""

from __future__ import annotations

import importlib

_PLACES = {
    "register": "mycelia_serving.servable.register",
    "distributed": "mycelia_serving.worker.distributed",
    "start_servable": "mycelia_serving.worker.start:start_servable",
    "start_servable_in_master": "mycelia_serving.worker.start:start_servable_in_master",
    "stop": "mycelia_serving.worker.start:stop",
}
__all__ = ["start_servable", "start_servable_in_master", "stop"]


def __getattr__(name: str):
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, member = place.partition(":")
    value = importlib.import_module(module)
    if member:
        value = getattr(value, member)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
