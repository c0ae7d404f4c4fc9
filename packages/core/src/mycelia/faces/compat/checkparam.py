"""`mindspore._checkparam`: the checks of arguments that layers of users call.

A check returns its argument, or raises TypeError or ValueError with the names of what is checked.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Callable
from typing import Any

EQ, NE, LT, LE, GT, GE = range(1, 7)
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = range(7, 11)
IN, NOT_IN = 11, 12

_RELATIONS: dict[int, tuple[str, Callable[[Any, Any], bool]]] = {
    EQ: ("=", operator.eq), NE: ("!=", operator.ne), LT: ("<", operator.lt), LE: ("<=", operator.le),
    GT: (">", operator.gt), GE: (">=", operator.ge), IN: ("in", lambda a, b: a in b),
    NOT_IN: ("not in", lambda a, b: a not in b),
}  # fmt: skip
_RANGES: dict[int, tuple[str, Callable, Callable]] = {
    INC_NEITHER: ("({}, {})", operator.gt, operator.lt), INC_LEFT: ("[{}, {})", operator.ge, operator.lt),
    INC_RIGHT: ("({}, {}]", operator.gt, operator.le), INC_BOTH: ("[{}, {}]", operator.ge, operator.le),
}  # fmt: skip


def _about(arg_name: str | None, prim_name: str | None) -> str:
    """How a message begins."""
    name = f"'{arg_name}'" if arg_name else "input value"
    return f"For '{prim_name}', the {name}" if prim_name else f"The {name}"


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    """isinstance, where a bool is no number."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


# ---- numbers -----------------------------------------------------------------------------------------------


def check_number_range(arg_value, lower_limit, upper_limit, rel, value_type, arg_name=None, prim_name=None):
    """A number of `value_type` between two limits, `rel` says which of them belong."""
    about = _about(arg_name, prim_name)
    if not _is(arg_value, value_type):
        raise TypeError(f"{about} must be '{value_type.__name__}', but got '{type(arg_value).__name__}'.")
    shown, above, below = _RANGES[rel]
    if not (above(arg_value, lower_limit) and below(arg_value, upper_limit)):
        raise ValueError(
            f"{about} must be in range of {shown.format(lower_limit, upper_limit)}, "
            f"but got {arg_value} with type '{type(arg_value).__name__}'."
        )
    return arg_value


def check_int_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """An int between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """A float between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def _related(arg_value, value, rel, kind, arg_name, prim_name):
    about, got = _about(arg_name, prim_name), type(arg_value).__name__
    if not isinstance(arg_value, kind):
        raise TypeError(f"{about} must be {kind.__name__}, but got '{got}'")
    shown, holds = _RELATIONS[rel]
    if isinstance(arg_value, bool) or not holds(arg_value, value):
        error = TypeError if isinstance(arg_value, bool) else ValueError
        raise error(
            f"{about} must be {kind.__name__} and must {shown} {value}, but got '{arg_value}' "
            f"with type '{got}'."
        )
    return arg_value


def check_int(arg_value, value, rel, arg_name=None, prim_name=None):
    """An int that stands in the relation `rel` to `value`."""
    return _related(arg_value, value, rel, int, arg_name, prim_name)


def check_float(arg_value, value, rel, arg_name=None, prim_name=None):
    """A float that stands in the relation `rel` to `value`."""
    return _related(arg_value, value, rel, float, arg_name, prim_name)


def _against(kind: type, rel: int, bound: Any) -> Callable:
    def check(arg_value, arg_name=None, prim_name=None):
        return _related(arg_value, bound, rel, kind, arg_name, prim_name)

    check.__doc__ = f"A {kind.__name__} {_RELATIONS[rel][0]} {bound}."
    return check


check_positive_int, check_negative_int = _against(int, GT, 0), _against(int, LT, 0)
check_non_positive_int, check_non_negative_int = _against(int, LE, 0), _against(int, GE, 0)
check_positive_float, check_negative_float = _against(float, GT, 0.0), _against(float, LT, 0.0)
check_non_positive_float, check_non_negative_float = _against(float, LE, 0.0), _against(float, GE, 0.0)


def check_equal_int(arg_value, value, arg_name=None, prim_name=None):
    """This very int."""
    return _related(arg_value, value, EQ, int, arg_name, prim_name)


def _each(check: Callable) -> Callable:
    def checked(sequence, arg_name=None, prim_name=None):
        for index, value in enumerate(sequence):
            check(value, f"{arg_name}[{index}]", prim_name)
        return sequence

    checked.__doc__ = f"A sequence; each member: {check.__doc__}"
    return checked


check_positive_int_sequence = _each(check_positive_int)
check_non_negative_int_sequence = _each(check_non_negative_int)
check_positive_float_sequence = _each(check_positive_float)


def check_is_number(arg_value, arg_type, arg_name=None, prim_name=None):
    """A finite number of this very type."""
    about = _about(arg_name, prim_name).replace("the ", "the type of ", 1).replace("The ", "The type of ", 1)
    if not _is(arg_value, arg_type):
        raise TypeError(f"{about} must be '{arg_type.__name__}', but got '{type(arg_value).__name__}'.")
    if arg_value - arg_value != 0:
        raise ValueError(f"{about} must be a legal float, but got '{arg_value}'.")
    return arg_value


def check_is_int(arg_value, arg_name=None, prim_name=None):
    """An int."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value, arg_name=None, prim_name=None):
    """A float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_number(arg_name, arg_value, value, rel, prim_name):
    """A number that stands in the relation `rel` to `value`."""
    shown, holds = _RELATIONS[rel]
    if not holds(arg_value, value):
        raise ValueError(
            f"For '{prim_name}', the argument '{arg_name}' must {shown} {value}, but got {arg_value}."
        )
    return arg_value


def check(arg_name, arg_value, value_name, value, rel=EQ, prim_name=None, excp_cls=ValueError):
    """Two values that stand in the relation `rel`; else `excp_cls`."""
    shown, holds = _RELATIONS[rel]
    if not holds(arg_value, value):
        about = _about(arg_name, prim_name)
        raise excp_cls(f"{about} should be {shown} {value_name}: {value}, but got {arg_value}.")
    return arg_value


# ---- other values ------------------------------------------------------------------------------------------


def check_bool(arg_value, arg_name=None, prim_name=None):
    """A bool."""
    if not isinstance(arg_value, bool):
        raise TypeError(f"{_about(arg_name, prim_name)} must be a bool, but got {type(arg_value).__name__}.")
    return arg_value


def check_string(arg_value, valid_values, arg_name=None, prim_name=None):
    """One of some strings."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        about = _about(arg_name, prim_name)
        raise ValueError(f"{about} must be str and must be in '{valid_values}', but got '{arg_value}'.")
    return arg_value


def check_value_type(arg_name, arg_value, valid_types, prim_name=None):
    """A value of one of some types; a bool is no int."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if _is(arg_value, kinds):
        return arg_value
    names = [getattr(kind, "__name__", str(kind)) for kind in kinds]
    wanted = f"should be '{names[0]}'" if len(names) == 1 else f"should be one of '{names}'"
    about = f"For '{prim_name}', the" if prim_name else "The"
    raise TypeError(f"{about} type of '{arg_name}' {wanted}, but got type '{type(arg_value).__name__}'.")


def check_isinstance(arg_name, arg_value, classes):
    """An object of these classes."""
    if not isinstance(arg_value, classes):
        raise ValueError(f"The parameter '{arg_name}' must be isinstance of {classes}, but got {arg_value}.")
    return arg_value


def check_element_type_of_iterable(arg_name, arg_value, valid_types, prim_name=None):
    """A collection whose members have these types."""
    for item in arg_value:
        check_value_type(arg_name, item, valid_types, prim_name)
    return arg_value


def check_element_type_of_dict(arg_name, arg_value, key_types, value_types, prim_name=None):
    """A dict whose keys and values have these types."""
    check_element_type_of_iterable(arg_name, arg_value, key_types, prim_name)
    check_element_type_of_iterable(arg_name, arg_value.values(), value_types, prim_name)
    return arg_value


def _by_pattern(pattern: str) -> Callable:
    def check(target, reg=None, flag=re.ASCII, prim_name=None):
        if re.match(reg or pattern, target, flag) is None:
            about = f"For '{prim_name}', the" if prim_name else "The"
            raise ValueError(f"{about} '{target}' is illegal, it must match the regular '{reg or pattern}'.")
        return True

    return check


check_str_by_regular = _by_pattern(r"^\w+[0-9a-zA-Z\_\.]*$")
check_file_name_by_regular = _by_pattern(r"^[0-9a-zA-Z@\_\-\.\:\/\\]+$")


def check_str_and_none_by_regular(target, reg=None, flag=re.ASCII, prim_name=None):
    """None, or a string of letters, digits and underscores."""
    return True if target is None else check_str_by_regular(target, reg, flag, prim_name)


def check_input_format(input_param):
    """The layout of images."""
    if input_param != "NCHW":
        raise ValueError(f"The data format must be NCHW, but got {input_param}.")
    return input_param


def check_pad_value_by_mode(pad_mode, padding, prim_name):
    """No padding but in the mode "pad"."""
    if pad_mode != "pad" and padding != 0:
        raise ValueError(
            f"For '{prim_name}', padding must be zero when pad_mode is '{pad_mode}', but got {padding}."
        )
    return padding


# ---- dtypes ------------------------------------------------------------------------------------------------


_KINDS = {"Number": "biufc", "Int": "i", "UInt": "u", "Float": "f", "Complex": "c"}


def _fits(kind: Any, template: Any) -> bool:
    if kind is template or kind == template:
        return True
    letters = _KINDS.get(str(template))  # a kind of numbers
    if letters is not None:
        return getattr(kind, "kind", "?") in letters
    return isinstance(template, type) and isinstance(kind, type) and issubclass(kind, template)


def check_type_name(arg_name, arg_type, valid_types, prim_name):
    """One of some dtypes."""
    kinds = list(valid_types) if isinstance(valid_types, (list, tuple)) else [valid_types]
    if not any(_fits(arg_type, kind) for kind in kinds):
        shown = f"one of {kinds}" if len(kinds) > 1 else kinds[0]
        raise TypeError(f"For '{prim_name}', the '{arg_name}' should be {shown}, but got '{arg_type}'.")
    return arg_type


def check_subclass(arg_name, type_, template_types, prim_name, addition_error_info=None):
    """A dtype below one of others."""
    kinds = template_types if isinstance(template_types, (list, tuple)) else (template_types,)
    if not any(_fits(type_, kind) for kind in kinds):
        raise TypeError(
            f"For '{prim_name}', the element of '{arg_name}' must be {', '.join(map(str, kinds))}, "
            f"but got {type_}.{addition_error_info or ''}"
        )


def _element(type_: Any) -> Any:
    """The dtype of a tensor's type."""
    element = getattr(type_, "element_type", None)
    return type_ if element is None else element() if callable(element) else element


def check_tensor_dtype_valid(arg_name, arg_type, valid_dtypes, prim_name):
    """A tensor's type with one of some dtypes."""
    check_tensors_dtypes_same_and_valid({arg_name: arg_type}, valid_dtypes, prim_name)


def check_tensors_dtypes_same_and_valid(args, valid_dtypes, prim_name):
    """Types of tensors with the same dtype, one of some."""
    for name, type_ in args.items():
        if type_ is _element(type_) or _element(type_) not in tuple(valid_dtypes):
            shown = ", ".join(f"Tensor[{kind}]" for kind in valid_dtypes)
            raise TypeError(f"For '{prim_name}', the element of '{name}' must be {shown}, but got {type_}.")
    check_types_same_and_valid({n: _element(t) for n, t in args.items()}, valid_dtypes, prim_name)


def check_types_same_and_valid(args, valid_values, prim_name):
    """The same dtype, one of some."""
    items = list(args.items())
    for name, kind in items:
        check_type_name(name, kind, valid_values, prim_name)
        if kind != items[0][1]:
            raise TypeError(
                f"For '{prim_name}', the type of '{name}' should be same as '{items[0][0]}', but got "
                f"'{items[0][0]}' with type {items[0][1]} and '{name}' with type {kind}."
            )


def check_scalar_or_tensor_types_same(args, valid_values, prim_name, allow_mix=False):
    """The same dtype, one of some; with `allow_mix` of tensors and numbers together."""
    tensors = [type_ is not _element(type_) for type_ in args.values()]
    if not allow_mix and len(set(tensors)) > 1:
        raise TypeError(f"For '{prim_name}', {list(args)} must be all tensors or all numbers.")
    check_types_same_and_valid({n: _element(t) for n, t in args.items()}, valid_values, prim_name)


# ---- sequences and axes ------------------------------------------------------------------------------------


def _expand_tuple(n_dimensions: int) -> Callable:
    """A converter: an int becomes a tuple of `n_dimensions`, a tuple must have that length."""

    def convert(m):
        if not isinstance(m, tuple):
            if not _is(m, int):
                raise TypeError(
                    "When expanding an int number to tuple, input type must be integer or tuple[int], "
                    f"but got {type(m)}"
                )
            return (m,) * n_dimensions
        if len(m) != n_dimensions or not all(_is(v, int) for v in m):
            raise TypeError(
                f"When expanding an int number to tuple, input tuple dimension must be {n_dimensions}, "
                f"with int members, but got {m}"
            )
        return m

    return convert


once, twice, triple = _expand_tuple(1), _expand_tuple(2), _expand_tuple(3)
max_, min_ = max, min


def check_axis_in_range(axis, ndim):
    """An axis, counted from the front."""
    if not _is(axis, int):
        raise TypeError(f"The 'axis' must be int, but got {type(axis)}.")
    if not -ndim <= axis < ndim:
        raise ValueError(f"The 'axis' must be in the range of [-{ndim}, {ndim}), but got {axis}.")
    return axis + ndim if axis < 0 else axis


def check_and_canonicalize_axes(axes, ndim):
    """Axes, counted from the front."""
    return tuple(check_axis_in_range(a, ndim) for a in (axes if isinstance(axes, (tuple, list)) else (axes,)))


def expanded_shape(ndim, axis_size, axis):
    """`axis_size` at one axis, 1 elsewhere."""
    return tuple(axis_size if i == axis else 1 for i in range(ndim))


def tuple_slice(tup, start, end):
    """``tup[start:end]``."""
    return tup[start:end]


def args_type_check(*type_args, **type_kwargs):
    """A decorator: arguments are checked to be of these types, or None where that is the default."""

    def decorate(function):
        signature = inspect.signature(function)
        wanted = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(function)
        def checked(*args, **kwargs):
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in wanted and value is not None and not isinstance(value, wanted[name]):
                    raise TypeError(f"The parameter '{name}' must be {wanted[name]}, but got {type(value)}")
            return function(*args, **kwargs)

        return checked

    return decorate


def check_hook_fn(hook_fn):
    """A function."""
    if not callable(hook_fn):
        raise TypeError(f"Expected a callable hook function, but got {type(hook_fn).__name__}.")
    return True
