"""mint functions that make tensors from sizes and numbers, or draw them at random."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.ops.arrays.shape import as_ints
from mycelia.engine.ops.elementwise.cast import cast
from mycelia.engine.ops.random.draws import _random_choice
from mycelia.engine.ops.random.generator import _draw_key
from mycelia.engine.ops.random.random import _drawn_shape, _integers, _normal, _sizes, _uniform
from mycelia.engine.tensors.tensor import is_tensor
from mycelia.faces.mint.signature_adapters import faces

_FACES = {
    "ones(size, *, dtype=None)": ops.ones,
    "zeros(size, *, dtype=None)": ops.zeros,
}
globals().update(faces(_FACES, __name__))


def _check_device(name: str, device) -> None:
    """Tensors live in the host's memory: any other place is refused."""
    if device is not None and not (isinstance(device, str) and device.lower() == "cpu"):
        raise errors.error(
            errors.MyceliaRuntimeError, name, f"device must be None or 'CPU', but got {device!r}",
            hint="a backend for that device would have it",
        )  # fmt: skip


def full(size, fill_value, *, dtype=None):
    """A tensor of shape `size` with `fill_value` everywhere.

    dtypes: `dtype`, by default that of the value: bool, int64 or float32.
    Errors: ValueError for a negative size.
    """
    if dtype is None:
        if is_tensor(fill_value):
            dtype = fill_value.dtype
        else:
            kind = fill_value.__class__  # int of an open size
            dtype = {bool: dtypes.bool_, int: dtypes.int64}.get(kind, dtypes.float32)
    return ops.full(size, fill_value, dtype=dtype)


def linspace(start, end, steps, *, dtype=None):
    """`steps` numbers from `start` to `end`, both included, at equal distances.

    Shapes: [steps].  dtypes: float32 unless `dtype` says otherwise.  Errors: ValueError for steps < 1.
    """
    numbers = ops.linspace(start, end, steps)
    return cast(numbers, dtypes.float32 if dtype is None else dtype)


def rand(*size, generator=None, dtype=None, device=None):
    """Numbers of the uniform distribution over [0, 1).

    Shapes: `size` as ints or one tuple.  dtypes: floating, float32 by default.
    """
    _check_device("rand", device)
    return _uniform(_sizes("rand", size), dtype, None, generator)


def rand_like(input, *, dtype=None, device=None):
    """`rand` with the shape of `input`, and its dtype unless `dtype` is given."""
    _check_device("rand_like", device)
    return _uniform(tuple(input.shape), dtype or input.dtype)


def randn(*size, generator=None, dtype=None, device=None):
    """Numbers of the standard normal distribution.

    Shapes: `size` as ints or one tuple.  dtypes: floating, float32 by default.
    """
    _check_device("randn", device)
    return _normal(_sizes("randn", size), dtype, None, generator)


def randn_like(input, *, dtype=None, device=None):
    """`randn` with the shape of `input`, and its dtype unless `dtype` is given."""
    _check_device("randn_like", device)
    return _normal(tuple(input.shape), dtype or input.dtype)


def _bounds(name: str, names: tuple[str, ...], args: tuple, given: dict) -> list:
    """Values of `names` from positions and keywords; with one position too few, low is left out and is 0."""
    if "low" not in given and len(args) + len(given) == len(names) - 1:
        at = names.index("low")
        args = (*args[:at], 0, *args[at:]) if len(args) >= at else args
        given = given if len(args) > at else {"low": 0, **given}
    values = dict(zip(names, args))
    if len(args) > len(names) or set(values) & set(given) or set(values) | set(given) != set(names):
        raise errors.type_error(name, f"takes {', '.join(names)}, but got {len(args)} arguments and {given}")
    values |= given
    for bound in ("low", "high"):
        if isinstance(values[bound], bool) or not isinstance(values[bound], int):
            raise errors.type_error(name, f"{bound} must be an int, but got {values[bound]!r}")
    return [values[n] for n in names]


def randint(*args, generator=None, dtype=None, device=None, **kwargs):
    """``randint(low=0, high, size)``: integers of the uniform distribution over [low, high).

    Shapes: `size`, a tuple.  dtypes: number, int64 by default.  Errors: ValueError if low is not below high.
    """
    _check_device("randint", device)
    low, high, size = _bounds("randint", ("low", "high", "size"), args, kwargs)
    return _cast_integers("randint", low, high, _sizes("randint", (size,)), dtype, generator)


def randint_like(*args, dtype=None, device=None, **kwargs):
    """``randint_like(input, low=0, high)``: `randint` with the shape of `input`, and its dtype unless `dtype`
    is given."""
    _check_device("randint_like", device)
    input, low, high = _bounds("randint_like", ("input", "low", "high"), args, kwargs)
    return _cast_integers("randint_like", low, high, tuple(input.shape), dtype or input.dtype, None)


def _cast_integers(name, low, high, shape, dtype, generator):
    if low >= high:
        raise errors.value_error(name, f"low must be less than high, but got {low} and {high}")
    dtype = dtypes.int64 if dtype is None else dtype
    drawn = _integers(name, low, high, shape, None, dtype if dtype.is_integer else dtypes.int64, generator)
    return drawn if dtype.is_integer else cast(drawn, dtype)


def randperm(n, *, generator=None, dtype=dtypes.int64):
    """The numbers 0 .. n - 1 in random order.

    Shapes: [n].  dtypes: number, int64 by default.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise errors.value_error("randperm", f"n must be an int that is not negative, but got {n!r}")
    return cast(ops.argsort(_uniform((n,), None, None, generator)), dtype)


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Numbers of the normal distribution around `mean` with the standard deviation `std`.

    Shapes: `size`, or the broadcast shape of `mean` and `std`, of which one is a Tensor.  dtypes: float32, or
    those of the Tensors.  Errors: ValueError without `size` if both are numbers.
    """
    if size is None and not is_tensor(mean) and not is_tensor(std):
        raise errors.value_error("normal", "size is needed if mean and std are numbers")
    shape = _drawn_shape((), mean, std) if size is None else tuple(as_ints(size, "size"))
    return _normal(shape, None, None, generator) * std + mean


def bernoulli(input, *, generator=None):
    """Ones with the probabilities `input`, and zeros.

    Shapes: any -> same.  dtypes: floating.  Errors: TypeError for other dtypes.
    """
    if not input.dtype.is_floating:
        raise errors.type_error("bernoulli", f"input must be floating, but is {input.dtype}")
    return cast(_uniform(tuple(input.shape), None, None, generator) < input, input.dtype)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Places along the last dimension, drawn in proportion to the weights `input`.

    Shapes: [C] or [N, C] -> [num_samples] or [N, num_samples].  dtypes: floating -> int64.
    """
    key = _draw_key(None, generator)
    return _random_choice(
        key, input, count=int(num_samples), replacement=bool(replacement), dtype=dtypes.int64
    )
