# Written by tools/gen_stubs.py.
from . import ascend as ascend, cpu as cpu, gpu as gpu

__all__ = [
    "ascend", "cpu", "gpu",
]
