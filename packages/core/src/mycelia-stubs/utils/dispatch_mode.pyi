# Written by tools/gen_stubs.py.
from mycelia.faces.utils.dispatch_mode import MsDispatchMode as MsDispatchMode

__all__ = [
    "MsDispatchMode",
]
