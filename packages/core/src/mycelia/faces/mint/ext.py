"""MindSpore's inner names of mint's functions: `split_view`, `softmax_ext`, `select_ext_view`, `linalg_qr`.

Its own examples use them. Names without such a mark are not found here.
"""

from __future__ import annotations

import re
from importlib import import_module

_MARKED = re.compile(
    r"(?P<inplace>inplace_)?(?P<linalg>linalg_)?(?P<name>\w+?)(?P<mark>(_ext)?(_view)?(_op)?)"
)
_HOMES = ("mycelia.faces.mint.nn.functional", "mycelia.faces.mint")


def __getattr__(name: str):
    parts = _MARKED.fullmatch(name)
    if not name.startswith("__") and (parts["inplace"] or parts["linalg"] or parts["mark"]):
        wanted = parts["name"] + ("_" if parts["inplace"] else "")
        for home in ("mycelia.faces.mint.linalg",) if parts["linalg"] else _HOMES:
            found = getattr(import_module(home), wanted, None)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
