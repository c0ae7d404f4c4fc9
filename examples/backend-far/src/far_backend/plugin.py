"""Hook implementations; imported at the first hook call, the backend only when it is asked for."""

from __future__ import annotations

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_backends():
    """The far device."""
    from far_backend.backend import FarBackend

    return [FarBackend()]
