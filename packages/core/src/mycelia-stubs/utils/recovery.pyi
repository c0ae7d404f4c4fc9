# Written by tools/gen_stubs.py.
from mycelia.faces.utils.recovery import (
    ExitByRequest as ExitByRequest, RSCPluginHandle as RSCPluginHandle, TFTCommValue as TFTCommValue,
)

__all__ = [
    "ExitByRequest", "RSCPluginHandle", "TFTCommValue",
]
