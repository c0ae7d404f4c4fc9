"""Hook implementations; imported at the first hook call, the backend only when it is asked for."""

from __future__ import annotations

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_backends():
    """PyTorch as a device that takes whole parts of graphs."""
    from torch_backend.backend import TorchBackend

    return [TorchBackend()]
