"""`mindspore._extends.parse.standard_method`: methods of tensors as functions, and Python's own for graphs.

``standard_method.reshape(x, 2, 3)`` is ``x.reshape(2, 3)``; ``standard_method.ms_len`` is `len`.
"""

from __future__ import annotations

import builtins

from mycelia.engine.tensors.tensor import Tensor

_KINDS = {"list": list, "dict": dict, "str": str, "tuple": tuple}


def __getattr__(name: str):
    kind, _, method = name.partition("_")
    for home, found in ((builtins, name.removeprefix("ms_")), (_KINDS.get(kind), method), (Tensor, name)):
        if (home is not builtins or name.startswith("ms_")) and hasattr(home, found):
            return getattr(home, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
