"""Examples run within the process of a test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def result_of(script: Path, options: list[str]) -> Any:
    """What `main(options)` of an example called train.py returns, imported for this call alone."""
    sys.path.insert(0, str(script.parent))
    try:
        import train

        return train.main(options)
    finally:
        sys.path.remove(str(script.parent))
        sys.modules.pop("train", None)
