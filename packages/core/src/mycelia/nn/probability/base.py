"""The base of distributions."""

from __future__ import annotations

from mycelia.engine import ops
from mycelia.engine.base import dtypes, errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.probability.checks import as_tensor, broadcast_shape, common_dtype, is_scalar

__all__ = ["Distribution"]

_METHODS = (
    "log_prob prob cdf log_cdf survival_function log_survival kl_loss mean mode sd var entropy "
    "cross_entropy sample get_dist_args get_dist_type"
).split()


class Distribution(Cell):
    """Base class of the distributions.

    A subclass names its parameters (`_names`; `_call_names` where calls use other words) and writes formulas
    of them, each as a method: ``_mean(*parameters)``, ``_log_prob(value, *parameters)``,
    ``_kl_loss(*parameters of the other, *parameters)``, ``_sample(shape, *parameters)``.  What is not written
    follows from what is.  A parameter may be given when the distribution is made, or with each call.

    `seed`: of samples; `dtype`: of values and samples; `name`: text; `param`: what it was made with.
    Errors: TypeError for other kinds, ValueError for values out of range, NotImplementedError for a
    quantity without formula.
    """

    _names: tuple[str, ...] = ()
    _call_names: tuple[str, ...] | None = None
    _shown_names: tuple[str, ...] | None = None
    _integers = False  # whether samples may be integers

    def __init__(self, seed, dtype, name, param):
        super().__init__()
        owner = type(self).__name__
        if not isinstance(name, str):
            raise errors.type_error(owner, f"name must be a str, but got {name!r}")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise errors.type_error(owner, f"seed must be an int of at least 0, but got {seed!r}")
        if seed is not None and seed < 0:
            raise errors.value_error(owner, f"seed must be an int of at least 0, but got {seed!r}")
        given = param.get("param_dict", {})
        if dtype is not None and self._names:
            fits = isinstance(dtype, dtypes.DType) and (
                dtype.is_floating or (self._integers and dtype.is_integer)
            )
            if not fits:
                raise errors.type_error(owner, f"dtype must be a numeric dtype that fits, but got {dtype}")
        self.__dict__.update(
            _name=name,
            _seed=seed or 0,
            _dtype=dtype,
            _parameters={k: v for k, v in param.items() if k != "self" and not k.startswith("_")},
            parameter_type=common_dtype(owner, given, dtype),
            _batch_shape=broadcast_shape(given.values()) if given else None,
            _is_scalar_batch=is_scalar(given.values()),
            default_parameters=[],
            parameter_names=[],
        )
        self.__dict__["_broadcast_shape"] = self._batch_shape

    name = property(lambda self: self._name, doc="The name given.")
    dtype = property(lambda self: self._dtype, doc="The dtype of values.")
    seed = property(lambda self: self._seed, doc="The seed of samples.")
    parameters = property(lambda self: self._parameters, doc="What it was made with.")
    is_scalar_batch = property(lambda self: self._is_scalar_batch, doc="Whether parameters are numbers.")
    batch_shape = property(lambda self: self._batch_shape, doc="The common shape of the parameters.")
    broadcast_shape = property(lambda self: self._broadcast_shape, doc="The shape of one sample.")

    def _add_parameter(self, value, name: str):
        """Keep a parameter as a Tensor; None when it comes with each call."""
        tensor = None if value is None else as_tensor(value, self.parameter_type)
        self.default_parameters.append(tensor)
        self.parameter_names.append(name)
        return tensor

    def _set_parameters(self, values: dict) -> list:
        for name, value in values.items():
            self.__dict__[f"_{name}_value"] = self._add_parameter(value, name)
        return self.default_parameters

    def extend_repr(self) -> str:
        if not self._names:
            return ""
        if not self.is_scalar_batch:
            return f"batch_shape = {self._broadcast_shape}"
        names = self._shown_names or self._names
        return ", ".join(f"{n} = {v}" for n, v in zip(names, self.default_parameters))

    # ---- arguments -----------------------------------------------------------------------------------------

    def _check_tensor(self, value, name: str):
        if not isinstance(value, Tensor):
            raise errors.type_error(
                type(self).__name__, f"{name} must be a Tensor, but got {type(value).__name__}"
            )
        return value

    def _given(self, args: tuple, kwargs: dict, suffix: str = "") -> list:
        """The parameters of a call, in order; None where it gives none."""
        names = [n + suffix for n in (self._call_names or self._names)]
        plain = [n + suffix for n in self._names]
        values = [*args, *[None] * (len(names) - len(args))]
        if len(args) > len(names):
            raise errors.type_error(type(self).__name__, f"takes the parameters {names}, but got {len(args)}")
        for key, value in kwargs.items():
            position = names.index(key) if key in names else plain.index(key) if key in plain else -1
            if position < 0:
                raise errors.type_error(type(self).__name__, f"got an unexpected argument '{key}'")
            values[position] = value
        return [None if v is None else self._check_tensor(v, n) for v, n in zip(values, names)]

    def _own(self, args: tuple, kwargs: dict) -> tuple:
        """The parameters in force for a call, in one dtype and shape."""
        found = []
        for value, default, name in zip(
            self._given(args, kwargs), self.default_parameters, self.parameter_names
        ):
            value = default if value is None else value
            if value is None:
                raise errors.type_error(
                    type(self).__name__, f"{name} must be a Tensor: it was not given before"
                )
            found.append(ops.cast(value, self.parameter_type))
        if len({v.shape for v in found}) > 1:
            shape = broadcast_shape(found)
            found = [ops.broadcast_to(v, shape) for v in found]
        return tuple(found)

    def _others(self, dist, args: tuple, kwargs: dict) -> tuple[tuple, tuple]:
        """Parameters of the other distribution, then of this one, of `kl_loss` and `cross_entropy`."""
        if dist != self._get_dist_type():
            raise errors.value_error(
                type(self).__name__, f"dist must be {self._get_dist_type()!r}, but got {dist!r}"
            )
        n = len(self._names)
        names = {f"{m}_b" for m in (*self._names, *(self._call_names or ()))}
        other = self._given(args[:n], {k: v for k, v in kwargs.items() if k in names}, "_b")
        for value, name in zip(other, self._names):
            self._check_tensor(value, f"{name}_b")
        rest = {k.removesuffix("_a"): v for k, v in kwargs.items() if k not in names}
        return tuple(ops.cast(v, self.parameter_type) for v in other), self._own(args[n:], rest)

    def _value_of(self, value):
        self._check_tensor(value, "value")
        return ops.cast(value, self.parameter_type if self._integers else self.dtype)

    # ---- quantities ----------------------------------------------------------------------------------------

    def _missing(self, what: str):
        return NotImplementedError(f"{what} is not implemented for {self.name} distribution.")

    def _formula(self, *names: str):
        """The first of these formulas that there is, with its name."""
        for name in names:
            found = getattr(self, f"_{name}", None)
            if found is not None:
                return name, found
        raise self._missing(names[0])

    def _of_value(self, names: tuple[str, ...], value, args: tuple, kwargs: dict):
        name, formula = self._formula(*names)
        if not self._names:
            return name, formula(value, *args, **kwargs)
        return name, formula(self._value_of(value), *self._own(args, kwargs))

    def _of_parameters(self, names: tuple[str, ...], args: tuple, kwargs: dict):
        name, formula = self._formula(*names)
        return name, formula(*args, **kwargs) if not self._names else formula(*self._own(args, kwargs))

    def log_prob(self, value, *args, **kwargs):
        """The logarithm of the density or probability at `value`."""
        name, found = self._of_value(("log_prob", "prob"), value, args, kwargs)
        return found if name == "log_prob" else ops.log(found)

    def prob(self, value, *args, **kwargs):
        """The density or probability at `value`."""
        name, found = self._of_value(("prob", "log_prob"), value, args, kwargs)
        return found if name == "prob" else ops.exp(found)

    def cdf(self, value, *args, **kwargs):
        """The probability of at most `value`."""
        order = ("cdf", "log_cdf", "survival_function", "log_survival")
        name, found = self._of_value(order, value, args, kwargs)
        if name == "cdf":
            return found
        if name == "log_cdf":
            return ops.exp(found)
        return 1.0 - (found if name == "survival_function" else ops.exp(found))

    def log_cdf(self, value, *args, **kwargs):
        """The logarithm of `cdf`."""
        if getattr(self, "_log_cdf", None) is not None:
            return self._of_value(("log_cdf",), value, args, kwargs)[1]
        return ops.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value, *args, **kwargs):
        """The probability of more than `value`."""
        order = ("survival_function", "log_survival", "cdf", "log_cdf")
        name, found = self._of_value(order, value, args, kwargs)
        if name == "survival_function":
            return found
        if name == "log_survival":
            return ops.exp(found)
        return 1.0 - (found if name == "cdf" else ops.exp(found))

    def log_survival(self, value, *args, **kwargs):
        """The logarithm of `survival_function`."""
        if getattr(self, "_log_survival", None) is not None:
            return self._of_value(("log_survival",), value, args, kwargs)[1]
        return ops.log(self.survival_function(value, *args, **kwargs))

    def mean(self, *args, **kwargs):
        """The mean."""
        return self._of_parameters(("mean",), args, kwargs)[1]

    def mode(self, *args, **kwargs):
        """The likeliest value."""
        return self._of_parameters(("mode",), args, kwargs)[1]

    def sd(self, *args, **kwargs):
        """The standard deviation."""
        name, found = self._of_parameters(("sd", "var"), args, kwargs)
        return found if name == "sd" else ops.sqrt(found)

    def var(self, *args, **kwargs):
        """The variance."""
        name, found = self._of_parameters(("var", "sd"), args, kwargs)
        return found if name == "var" else ops.square(found)

    def entropy(self, *args, **kwargs):
        """The entropy, in nats."""
        return self._of_parameters(("entropy",), args, kwargs)[1]

    def kl_loss(self, dist, *args, **kwargs):
        """The divergence of Kullback and Leibler from another distribution of the same kind, `dist`."""
        _, formula = self._formula("kl_loss")
        if not self._names:
            return formula(dist, *args, **kwargs)
        other, own = self._others(dist, args, kwargs)
        return formula(*other, *own)

    def cross_entropy(self, dist, *args, **kwargs):
        """The cross entropy with another distribution of the same kind."""
        if not self._names:
            return self._formula("cross_entropy")[1](dist, *args, **kwargs)
        self._formula("kl_loss")
        other, own = self._others(dist, args, kwargs)
        return self._entropy(*own) + self._kl_loss(*other, *own)

    def sample(self, *args, **kwargs):
        """Random values: ``sample(shape=(), *parameters)`` has `shape` in front of the parameters' shape."""
        _, formula = self._formula("sample")
        if not self._names:
            return formula(*args, **kwargs)
        shape = args[0] if args else kwargs.pop("shape", ())
        if not isinstance(shape, tuple):
            raise errors.type_error(
                type(self).__name__, f"shape must be a tuple, but got {type(shape).__name__}"
            )
        return ops.cast(formula(shape, *self._own(args[1:], kwargs)), self.dtype)

    def get_dist_args(self, *args, **kwargs):
        """The parameters, those given in place of those of the distribution."""
        given = self._given(args, kwargs)
        return tuple(d if v is None else v for v, d in zip(given, self.default_parameters))

    def _get_dist_type(self) -> str:
        return type(self).__name__

    def get_dist_type(self) -> str:
        """The kind: what `kl_loss` takes as `dist`."""
        return self._get_dist_type()

    def construct(self, name, *args, **kwargs):
        if name not in _METHODS:
            raise self._missing(name)
        return getattr(self, name)(*args, **kwargs)

    def _uniform(self, shape: tuple, low: float = 0.0, high: float = 1.0):
        zero, one = Tensor(low, dtypes.float32), Tensor(high, dtypes.float32)
        return ops.uniform(shape or (1,), zero, one, self.seed).reshape(shape)
