# Written by tools/gen_stubs.py.
from mycelia.engine._C import Tensor as Tensor

__all__ = [
    "dct", "dctn", "idct", "idctn",
]


def dct(x, type=2, n=None, axis=-1, norm=None) -> Tensor:
    """Cosine transform along one axis, first cut or filled with zeros to `n`."""

def dctn(x, type=2, s=None, axes=None, norm=None) -> Tensor:
    """Cosine transform along several axes: all, or the last ones if `s` gives fewer sizes."""

def idct(x, type=2, n=None, axis=-1, norm=None) -> Tensor:
    """Inverse of `dct`, with the same arguments."""

def idctn(x, type=2, s=None, axes=None, norm=None) -> Tensor:
    """Inverse of `dctn`, with the same arguments."""
