"""Overwriting Parameters: assign, assign_add, assign_sub."""

import numpy as np

from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.define import op
from mycelia.engine.ops.part_rules import each_element


def _overwritten(variable, value):
    if value.dtype is not variable.dtype and variable.dtype.is_bool:
        raise TypeError(f"a bool parameter cannot take {value.dtype} values")
    if value.shape != variable.shape and value.size != 1:
        raise ValueError(
            f"value must have the shape {list(variable.shape)} of the parameter, but has {list(value.shape)}"
        )
    return TensorType(variable.dtype, variable.shape)


def _spread(value, variable):
    """The value in the parameter's shape; one element fills all."""
    return np.broadcast_to(np.reshape(value, ()) if np.size(value) == 1 else value, variable.shape)


@op(infer=_overwritten, updates=("variable",), nondiff=True, mindir="Assign", cost=0, parts=each_element)
def _assign(variable, value):
    """Overwrite `variable` with `value`, cast to its dtype.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return _spread(value, variable).astype(variable.dtype)


@_assign.samples
def _assign(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand(3, 4), rand.ints(0, 9, (3, 4))
    yield rand(), rand(1)


@op(infer=_overwritten, updates=("variable",), nondiff=True, mindir="AssignAdd", parts=each_element)
def _assign_add(variable, value):
    """``variable += value``.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return variable + _spread(value, variable).astype(variable.dtype)


@_assign_add.samples
def _assign_add(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand.ints(0, 9, (1,)), rand.ints(1, 2, (1,))
    yield rand(2, 3), rand()


@op(infer=_overwritten, updates=("variable",), nondiff=True, mindir="AssignSub", parts=each_element)
def _assign_sub(variable, value):
    """``variable -= value``.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return variable - _spread(value, variable).astype(variable.dtype)


@_assign_sub.samples
def _assign_sub(rand):
    yield rand(3, 4), rand(3, 4)
    yield rand.ints(0, 9, (1,)), rand.ints(1, 2, (1,))
    yield rand(2, 3), rand()


def _changed(change, variable, value):
    """The new value; a tape that follows the Parameter follows it after that, too."""
    place = getattr(variable, "_tape_place", None)
    result = change(variable, value)._detach()
    if place is not None:
        variable._tape_place = place
    return result


def assign(variable, value):
    """Overwrite the Parameter `variable` with `value`, cast to its dtype; returns the new value.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return _changed(_assign, variable, value)


def assign_add(variable, value):
    """Increase the Parameter `variable` by `value`, cast to its dtype; returns the new value.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return _changed(_assign_add, variable, value)


def assign_sub(variable, value):
    """Decrease the Parameter `variable` by `value`, cast to its dtype; returns the new value.

    Shapes: value as variable, or one element.  dtypes: any.
    """
    return _changed(_assign_sub, variable, value)


__all__ = ["assign", "assign_add", "assign_sub"]
