"""Transforms of any column, and the base of all transforms.

A transform is a function of the arrays of a row. Wrong arguments are TypeErrors and ValueErrors where it is
made; rows that it cannot take are RuntimeErrors where it is called.
"""

from __future__ import annotations

import enum
import itertools
import operator as operators

import numpy as np

from mycelia.dataset import checks, config
from mycelia.dataset.execution import rng_streams
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import Type, as_dtype

_salts = itertools.count(1)


def as_array(op: str, value) -> np.ndarray:
    """The value as an array of numbers or texts. TypeError for anything else."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.empty((), object)
    if array.dtype.kind == "O":
        raise errors.type_error(op, f"{type(value).__name__} cannot become an array of numbers or texts")
    return array


def is_text(array: np.ndarray) -> bool:
    """Whether the elements are texts."""
    return array.dtype.kind in "US"


def texts(values) -> np.ndarray:
    """An array of texts that is as wide as its longest one."""
    array = np.asarray(values)
    return array if array.dtype.kind in "US" and array.size else array.astype("<U1")


def compact(array: np.ndarray) -> np.ndarray:
    """The same texts, no wider than needed."""
    return np.array(array.tolist()) if is_text(array) and array.size else array


class Transform:
    """Base of the transforms: `apply` gets the arrays of a row and gives an array or a tuple of them."""

    inputs = 1  # how many columns it takes; None: any number

    def apply(self, *arrays: np.ndarray):
        """The changed columns."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "apply(array) is not defined")

    def __call__(self, *values):
        name = type(self).__name__
        if (len(values) != self.inputs) if self.inputs is not None else not values:
            kind = "The op is OneToOne, can only accept one tensor as input. " if self.inputs == 1 else ""
            raise errors.runtime_error(
                name, f"{kind}It takes {self.inputs or 'some'} columns, but got {len(values)}"
            )
        return self.apply(*(as_array(name, v) for v in values))

    def parse(self) -> Transform:
        """What a pipeline runs: the transform itself."""
        return self

    def refuse(self, message: str):
        """The error about a row that does not fit."""
        return errors.runtime_error(type(self).__name__, message)


class RandomTransform(Transform):
    """Base of random transforms: each row of a pipeline has its numbers; alone, one instance has some."""

    random = True

    def __init__(self):
        self._salt = next(_salts)
        self._rng: np.random.Generator | None = None

    @property
    def rng(self) -> np.random.Generator:
        """The random numbers of the row."""
        of_row = rng_streams.rng()
        if of_row is not None:
            return of_row
        if self._rng is None:
            self._rng = config.generator(0, self._salt)
        return self._rng


class _Group(RandomTransform):
    """Several transforms."""

    inputs = None

    def __init__(self, transforms):
        super().__init__()
        name = type(self).__name__
        checks.kind(name, "transforms", transforms, list)
        if not transforms:
            raise errors.value_error(name, "transforms list can not be empty.")
        for i, transform in enumerate(transforms):
            if not callable(transform):
                raise errors.type_error(
                    name,
                    f"transforms[{i}] is neither a transforms op (TensorOperation) nor a callable pyfunc. It "
                    f"is a {type(transform).__name__}",
                )
            if type(transform) is type:
                raise errors.value_error(
                    name, f"transforms[{i}] is the class {transform.__name__}: parentheses are missing"
                )
        self.transforms = list(transforms)

    def __call__(self, *values):
        if not values:
            raise self.refuse("called without columns")
        values = self.apply(*values)
        if any(isinstance(t, Transform) for t in self.transforms):
            return values  # the transforms made arrays of them
        name = type(self).__name__
        if not isinstance(values, tuple):
            return _kept(name, values)
        return tuple(_kept(name, v) for v in values)


def _kept(op: str, value):
    """Numbers become arrays; what is no array at all (a PIL image) passes as it is."""
    return as_array(op, value) if isinstance(value, (int, float, str, bytes, list, np.generic)) else value


def _run(transforms, values: tuple):
    for transform in transforms:
        values = transform(*values)
        values = values if isinstance(values, tuple) else (values,)
    return values if len(values) > 1 else values[0]


class Compose(_Group):
    """Several transforms, one after the other."""

    @property
    def random(self) -> bool:
        """Whether one of them is random."""
        return any(getattr(transform, "random", False) for transform in self.transforms)

    def __init__(self, transforms):
        super().__init__(transforms)
        flat = []
        for transform in self.transforms:
            flat += transform.transforms if isinstance(transform, Compose) else [transform]
        self.transforms = flat

    def apply(self, *values):
        return _run(self.transforms, values)


class RandomApply(_Group):
    """All of the transforms, with probability `prob`."""

    def __init__(self, transforms, prob=0.5):
        super().__init__(transforms)
        self.prob = checks.number("RandomApply", "prob", prob, 0, 1)

    def apply(self, *values):
        if self.rng.random() < self.prob:
            return _run(self.transforms, values)
        return values if len(values) > 1 else values[0]


class RandomChoice(_Group):
    """One of the transforms, each as likely."""

    def apply(self, *values):
        return self.transforms[int(self.rng.integers(len(self.transforms)))](*values)


class RandomOrder(_Group):
    """All of the transforms in random order."""

    def apply(self, *values):
        return _run([self.transforms[i] for i in self.rng.permutation(len(self.transforms))], values)


class Concatenate(Transform):
    """`prepend`, the columns and `append`, all of rank 1 and one dtype, in one array."""

    inputs = None

    def __init__(self, axis=0, prepend=None, append=None):
        if axis is not None and checks.kind("Concatenate", "axis", axis, int) not in (0, -1):
            raise errors.value_error(
                "Concatenate", f"only 1D concatenation supported. axis must be 0 or -1, but is {axis}"
            )
        for name, value in (("prepend", prepend), ("append", append)):
            if value is not None and checks.kind("Concatenate", name, value, np.ndarray).ndim != 1:
                raise errors.value_error(
                    "Concatenate", f"can only {name} 1D arrays. The one given has shape {value.shape}"
                )
        self.axis, self.prepend, self.append = axis, prepend, append

    def apply(self, *arrays):
        parts = [a for a in (self.prepend, *arrays, self.append) if a is not None]
        kinds = {"text" if is_text(a) else a.dtype.name for a in parts}
        if any(a.ndim != 1 for a in parts):
            raise self.refuse(f"only 1D input supported, but got shapes {[a.shape for a in parts]}")
        if len(kinds) > 1:
            raise self.refuse(f"input datatype does not match: {sorted(kinds)}")
        return np.concatenate(parts)


class Duplicate(Transform):
    """The column twice."""

    def apply(self, array):
        return array, array.copy()


class Fill(Transform):
    """Every element replaced by `fill_value`, in the column's dtype."""

    def __init__(self, fill_value):
        self.fill_value = checks.kind("Fill", "fill_value", fill_value, str, float, bool, int, bytes)

    def apply(self, array):
        if is_text(array) != isinstance(self.fill_value, (str, bytes)):
            raise self.refuse(
                "fill_value and the input tensor must be of the same data type, but got "
                f"{self.fill_value!r} for a column of {array.dtype}"
            )
        if is_text(array):
            return np.full(array.shape, self.fill_value)
        return np.full(array.shape, np.asarray(self.fill_value).astype(array.dtype))


class Relational(enum.IntEnum):
    """Comparisons of `Mask`."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class Mask(Transform):
    """Each element compared with `constant`, as `dtype`."""

    def __init__(self, operator, constant, dtype=None):
        self.operator = checks.kind("Mask", "operator", operator, Relational)
        self.constant = checks.kind("Mask", "constant", constant, str, float, bool, int, bytes)
        if dtype is not None:
            checks.kind("Mask", "dtype", dtype, Type)
        self.dtype = np.dtype(np.bool_) if dtype is None else _numeric("Mask", dtype)

    def apply(self, array):
        if is_text(array) != isinstance(self.constant, (str, bytes)):
            raise self.refuse(
                "input datatype does not match the value datatype: "
                f"{self.constant!r} cannot be compared with a column of {array.dtype}"
            )
        constant = self.constant if is_text(array) else np.asarray(self.constant).astype(array.dtype)
        return getattr(operators, self.operator.name.lower())(array, constant).astype(self.dtype)


def numeric(dtype: Type) -> np.dtype | None:
    """The NumPy dtype of bools or numbers, None for another type."""
    try:
        found = np.dtype(as_dtype(dtype).np)
    except TypeError:
        return None
    return found if found.kind in "biuf" else None


def _numeric(op: str, dtype: Type) -> np.dtype:
    found = numeric(dtype)
    if found is None:
        raise errors.runtime_error(op, f"{dtype} is not a type of bools or numbers")
    return found


class OneHot(Transform):
    """Class numbers as vectors of `num_classes`; `smoothing_rate` is spread over all classes.

    The result [num_classes], [count, num_classes] for several numbers, has the dtype of the numbers;
    float64 with smoothing.
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0):
        checks.number("OneHot", "smoothing_rate", smoothing_rate)
        checks.integer("OneHot", "num_classes", num_classes, 1, 2**63)
        checks.between("OneHot", "smoothing_rate", smoothing_rate, 0, 1)
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def apply(self, label):
        if label.dtype.kind not in "iu" or (
            label.size and (label.min() < 0 or label.max() >= self.num_classes)
        ):
            raise self.refuse(f"labels must be ints in [0, {self.num_classes}), but got {label}")
        flat = label.reshape(-1)
        others = self.smoothing_rate / self.num_classes
        rows = np.full(
            (len(flat), self.num_classes), others, np.float64 if self.smoothing_rate else label.dtype
        )
        rows[np.arange(len(flat)), flat] = 1 - self.smoothing_rate + others
        return rows if label.ndim else rows[0]


class PadEnd(Transform):
    """Grown (or cut) at the end of each axis to `pad_shape`; a None there keeps the axis."""

    def __init__(self, pad_shape, pad_value=None):
        if pad_value is not None:
            checks.kind("PadEnd", "pad_value", pad_value, str, float, bool, int, bytes)
        for size in checks.kind("PadEnd", "pad_shape", pad_shape, list):
            if size is not None:
                checks.integer("PadEnd", "pad_shape", size, 1, 2**63 - 1)
        self.pad_shape, self.pad_value = list(pad_shape), pad_value

    def apply(self, array):
        empty = b"" if array.dtype.kind == "S" else ""
        value = (empty if is_text(array) else 0) if self.pad_value is None else self.pad_value
        if is_text(array) != isinstance(value, (str, bytes)):
            raise self.refuse(f"can not pad numeric and string tensors together: {array.dtype}, {value!r}")
        if array.ndim != len(self.pad_shape):
            raise self.refuse(
                f"cannot bring {array.dtype} of shape {array.shape} to {self.pad_shape} with {value!r}"
            )
        shape = [have if size is None else size for have, size in zip(array.shape, self.pad_shape)]
        dtype = np.result_type(array.dtype, np.asarray(value).dtype) if is_text(array) else array.dtype
        out = np.full(shape, np.asarray(value).astype(dtype))
        kept = tuple(slice(min(a, b)) for a, b in zip(array.shape, shape))
        out[kept] = array[kept]
        return compact(out)


class Plugin(Transform):
    """An operation of a shared library of MindSpore's C++ data engine; such libraries do not fit here."""

    def __init__(self, lib_path, func_name, user_args=None):
        checks.kind("Plugin", "lib_path", lib_path, str)
        checks.kind("Plugin", "func_name", func_name, str)
        if user_args is not None:
            checks.kind("Plugin", "user_args", user_args, str)
        self.lib_path, self.func_name, self.user_args = lib_path, func_name, user_args or ""

    def apply(self, array):
        raise errors.error(
            errors.MyceliaRuntimeError, "Plugin",
            f"'{self.lib_path}' is made for the C++ interface of MindSpore's data engine, not there here",
            hint="a Python function does the same in Dataset.map",
        )  # fmt: skip


class Slice(Transform):
    """A part of the array: an int, a list of ints, a slice, None, True or ... per axis; ranks stay."""

    def __init__(self, *slices):
        for item in slices:
            if item is not None:
                checks.kind("Slice", "slices", item, int, list, slice, bool, type(Ellipsis))
            for place, index in enumerate(item if isinstance(item, list) else ()):
                checks.kind("Slice", f"slice_option[{place}]", index, int)
        self.slices = slices

    def apply(self, array):
        if len(self.slices) > array.ndim:
            raise self.refuse(f"{len(self.slices)} slices for an array of shape {array.shape}")
        out = array
        for axis, item in enumerate(self.slices):
            if item is None or item is Ellipsis or item is True:
                continue
            if item is False or item == []:
                raise self.refuse(f"Both indices and slices can not be empty. {item!r} selects nothing")
            if isinstance(item, slice):
                out = out[(slice(None),) * axis + (item,)]
                continue
            indices, size = ([item] if isinstance(item, int) else item), array.shape[axis]
            if not all(-size <= i < size for i in indices):
                out_of = next(i for i in indices if not -size <= i < size)
                raise self.refuse(f"Index {out_of} is out of bounds. The array has shape {array.shape}")
            out = np.take(out, indices, axis)
        return compact(out)


class TypeCast(Transform):
    """Convert to another dtype, given as ours or NumPy's."""

    def __init__(self, data_type):
        if isinstance(data_type, Type):
            self.data_type = numeric(data_type)
            return
        try:
            found = None if data_type is None else np.dtype(data_type)
        except TypeError:
            found = None
        if found is None:
            raise errors.type_error("TypeCast", f"data_type must be a dtype, but got {data_type!r}")
        self.data_type = found if found.kind in "biuf" else None

    def apply(self, array):
        if self.data_type is None or is_text(array):
            raise self.refuse(f"a column of {array.dtype} cannot become {self.data_type or 'texts'}")
        with np.errstate(invalid="ignore", over="ignore"):
            if array.dtype.kind == "f" and self.data_type.kind in "iu":  # wraps like the integers do
                return array.astype(np.int64).astype(self.data_type)
            return array.astype(self.data_type)


class Unique(Transform):
    """The distinct elements in order of appearance, the index of each element among them, and counts."""

    def apply(self, array):
        if is_text(array) or array.ndim == 0:
            raise self.refuse(f"takes numbers of rank 1 or more, but got {array.dtype} of {array.shape}")
        _, first, index, count = np.unique(
            array.ravel(), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return (
            array.ravel()[first[order]], place[index].astype(np.int32), count[order].astype(np.int32)
        )  # fmt: skip
