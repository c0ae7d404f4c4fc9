# Written by tools/gen_stubs.py.
from mycelia.io.compositions.table import Unsupported as Unsupported, composed as composed, traced as traced

__all__ = [
    "Unsupported", "composed", "traced",
]
