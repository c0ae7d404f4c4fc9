# Written by tools/gen_stubs.py.
from . import fft as fft, linalg as linalg, optimize as optimize

__all__ = [
    "fft", "linalg", "optimize",
]
