"""Start a worker, as MindSpore Serving 1.1 does; `register` for `servable_config.py` is here, too."""

from __future__ import annotations

from mycelia_serving.lazy import lazy

_PLACES = {
    "register": "mycelia_serving.servable.register",
    "distributed": "mycelia_serving.worker.distributed",
    "start_servable": "mycelia_serving.worker.start:start_servable",
    "start_servable_in_master": "mycelia_serving.worker.start:start_servable_in_master",
    "stop": "mycelia_serving.worker.start:stop",
}
__all__ = ["start_servable", "start_servable_in_master", "stop"]

__getattr__, __dir__ = lazy(__name__, globals(), _PLACES)
