"""Special functions."""

from mycelia import ops
from mycelia.engine.base import errors
from mycelia.engine.ops.elementwise import beta as _beta
from mycelia.ops.primitives.checks import positive
from mycelia.ops.primitives.define import primitive


def _bessel(name, function):
    """A class of a Bessel function, which takes floating tensors only."""

    def body(x):
        if not x.dtype.is_floating:
            raise errors.type_error(name, f"the input must have a floating dtype, but it is {x.dtype}")
        return getattr(ops, function)(x)

    body.__doc__ = (getattr(ops, function).__doc__ or "").strip().partition("\n")[0]
    primitive(name=name)(body)


for _kind in ("I0", "I0e", "I1", "I1e", "J0", "J1", "K0", "K0e", "K1", "K1e", "Y0", "Y1"):
    _bessel(f"Bessel{_kind}", f"bessel_{_kind.lower()}")


@primitive
def Betainc(a, b, x):
    """Regularized incomplete beta function."""
    return _beta.betainc(a, b, x)


@primitive
def Polygamma(a, x):
    """The derivative of order `a`, a tensor of one int, of the digamma function."""
    return ops.polygamma(a, x)


@primitive
def Mvlgamma(x, *, p: positive):
    """Logarithm of the multivariate gamma function of dimension `p`."""
    return ops.mvlgamma(x, p)
