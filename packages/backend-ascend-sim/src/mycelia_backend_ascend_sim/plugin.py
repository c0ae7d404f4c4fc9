"""Hook implementations of the Ascend simulator; imported the first time core calls a hook,
so nothing heavy at the top.
"""

from __future__ import annotations

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_backends():
    """The simulated device."""
    from mycelia_backend_ascend_sim.backend import AscendSimBackend

    return [AscendSimBackend()]
