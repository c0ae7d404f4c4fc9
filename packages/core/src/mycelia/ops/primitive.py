"""`Primitive`: an op as an object that is made with its constants and called with tensors.

The primitives of MindSpore are in `mycelia.ops.primitives`, made by the decorators there. Here is the base
class, what users derive their own from, and the registry of implementations in Python.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mycelia.engine.base import errors, ignored
from mycelia.engine.sharding import annotate

_HIDDEN = ("input_names", "output_names")


class _Registry(dict):
    """Classes of primitives by name, which `mycelia.ops.primitives` enters when it is imported."""

    load: Callable[[], object]  # imports it; `mycelia.ops`, which knows all its parts, sets this


registry: _Registry = _Registry()


class Primitive:
    """Base class of ops that are objects: constants are given at construction, tensors at the call.

    A primitive that is made by name, ``Primitive("ReduceSum")``, runs the op of that name: the tensors of the
    call are followed by the op's constants.
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise errors.type_error("Primitive", f"the name must be a str, but got {type(name).__name__}")
        self.name = name
        self.attrs: dict[str, Any] = {}
        self.init_attrs: dict[str, Any] = {"name": name}
        self._update_parameter = False

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Set an attribute; it can be read from the primitive and is printed with it."""
        self.__dict__[name] = value
        self.attrs[name] = value
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Take an attribute away again; one that there is not is ignored."""
        if name in self.attrs and name in self.__dict__:
            del self.__dict__[name]
            del self.attrs[name]
        return self

    def init_prim_io_names(self, inputs: list[str], outputs: list[str]) -> None:
        """Name the inputs and the outputs."""
        for names, label in ((inputs, "inputs"), (outputs, "outputs")):
            if not isinstance(names, list):
                raise errors.type_error(
                    self.name, f"the argument '{label}' must be a list of str, but got {type(names).__name__}"
                )
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def set_device(self, device_target: str) -> Primitive:
        """Record the device that this op is to run on; a warning says that the device target runs it."""
        ignored.tell("Primitive", "set_device", device_target, "the device target runs the op")
        return self.add_prim_attr("primitive_target", device_target)

    def set_stage(self, stage: int) -> Primitive:
        """Record the pipeline stage of this op; a warning says that there is one."""
        if stage:
            ignored.tell("Primitive", "set_stage", stage, "networks are not cut into stages")
        return self.add_prim_attr("stage", stage)

    def place(self, role: str, rank_id: int) -> None:
        """The process that is to run this op: `role` is "MS_WORKER", `rank_id` its number; a warning says
        that it is this one.
        """
        if role != "MS_WORKER":
            raise errors.value_error(
                "Primitive.place", f"the argument 'role' must be 'MS_WORKER', but got {role!r}"
            )
        if isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0:
            raise errors.value_error(
                "Primitive.place", f"the argument 'rank_id' must be an int >= 0, but got {rank_id!r}"
            )
        if rank_id:
            ignored.tell("Primitive.place", "rank_id", rank_id, "no other process takes part")

    def set_user_data(self, key: str, value: Any) -> None:
        """Keep a value of the user's with this object, for `get_user_data`."""
        self.__dict__.setdefault("_user_data", {})[key] = value

    def get_user_data(self, key: str) -> Any:
        """What `set_user_data` kept under this key, or None."""
        return self.__dict__.get("_user_data", {}).get(key)

    def recompute(self, mode: bool = True) -> Primitive:
        """Record whether the results of this op are to be computed again for the gradient; a warning says
        that `Cell.recompute` and `mycelia.recompute` do that.
        """
        if not isinstance(mode, bool):
            raise errors.type_error(
                "Primitive.recompute", f"mode must be a bool, but got {type(mode).__name__}"
            )
        if mode:
            ignored.tell(
                "Primitive", "recompute", mode, "results are kept; Cell.recompute computes a Cell again"
            )
        return self.add_prim_attr("recompute", mode)

    def shard(self, in_strategy: tuple | None = None, out_strategy: tuple | None = None) -> Primitive:
        """Say how inputs and outputs are divided among the ranks of `semi_auto_parallel`: a tuple of numbers
        of parts, one for each axis, or a Layout, for each tensor. A process that trains alone has them whole.

        Errors: TypeError, ValueError for what is none; of a call, in a graph that is divided: ValueError
        naming the axis for tensors that cannot be cut so, RuntimeError if it runs eagerly.
        """
        if in_strategy is None and out_strategy is None:
            return self
        layout = False
        for label, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            if strategy is None:
                continue
            if not isinstance(strategy, tuple):
                raise errors.type_error(
                    self.name, f"the argument '{label}' must be a tuple, but got {type(strategy).__name__}"
                )
            for part in strategy:
                layout |= hasattr(part, "to_dict")
                if not isinstance(part, tuple) and not hasattr(part, "to_dict"):
                    raise errors.type_error(
                        self.name,
                        f"the parts of '{label}' must be tuples or Layouts, but got {type(part).__name__}",
                    )
                if isinstance(part, tuple) and not all(
                    isinstance(n, int) or hasattr(n, "to_dict") for n in part
                ):
                    raise errors.type_error(self.name, f"'{label}' must hold ints, but got {part}")
        if in_strategy is None:
            raise errors.value_error(self.name, f"out_strategy is {out_strategy}, which needs an in_strategy")
        self.__dict__["_strategies"] = in_strategy, out_strategy
        self.__class__ = _divided(type(self))
        annotate.changed("Primitive.shard", in_strategy)
        if layout:
            self.add_prim_attr("in_layout", tuple(_layout(part) for part in in_strategy))
            if out_strategy is not None:
                self.add_prim_attr("out_layout", tuple(_layout(part) for part in out_strategy))
            return self
        self.add_prim_attr("in_strategy", in_strategy)
        return self.add_prim_attr("out_strategy", out_strategy) if out_strategy is not None else self

    def set_prim_instance_name(self, instance_name: str) -> Primitive:
        """Give this primitive a name of its own."""
        self.instance_name = instance_name
        return self

    def check_elim(self, *args: Any) -> tuple[bool, Any]:
        """Whether the result is known without running the op, and the result."""
        del args  # no result is known beforehand
        return False, None

    @property
    def update_parameter(self) -> bool:
        """Whether the op overwrites a Parameter by itself."""
        return self._update_parameter

    def __call__(self, *args: Any) -> Any:
        known, result = self.check_elim(*args)
        if known:
            return result
        implementation = get_vm_impl_fn(self) or getattr(self, "vm_impl", None)
        if implementation is not None:
            rule = bprop_getters.get(self.name) or bprop_getters.get(type(self))
            if rule is None:
                return implementation(*args)
            from mycelia.engine.autodiff.custom_rule import custom_vjp

            return custom_vjp(implementation, rule(self))(*args)
        return _run_by_name(self, args)

    def __getattr__(self, name: str) -> Any:
        attrs = self.__dict__.get("attrs", {})
        if name in attrs:
            return attrs[name]
        raise AttributeError(
            f"'{self.__dict__.get('name', type(self).__name__)}' object has no attribute '{name}'"
        )

    def __deepcopy__(self, memo: dict) -> Primitive:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.attrs, made.init_attrs = dict(self.attrs), dict(self.init_attrs)
        return made

    __copy__ = functools.partialmethod(__deepcopy__, None)

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if k not in _HIDDEN)
        return f"Prim[{self.name}]<{shown}>" if shown else f"Prim[{self.name}]"


@functools.cache
def _divided(kind: type[Primitive]) -> type[Primitive]:
    """The class of primitives of `kind` that have a strategy."""
    if hasattr(kind, "_strategies_of"):
        return kind

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        strategy, result = self._strategies
        called = functools.partial(super(made, self).__call__)
        return annotate.of_operator(self.name, self.attrs, strategy, result, called, args, kwargs)

    members = {"__call__": call, "__doc__": kind.__doc__, "__module__": kind.__module__}
    made = type(kind.__name__, (kind,), {**members, "_strategies_of": kind})
    return made


def _layout(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_layout(p) for p in part)
    return {k: v for k, v in part.to_dict().items() if k != "rank_list"}


def _run_by_name(primitive: Primitive, args: tuple) -> Any:
    """The op of the primitive's name on `args`: its tensors, then those constants that no attribute gives."""
    if not registry:
        registry.load()
    kind = registry.get(primitive.name)
    if kind is None:
        raise errors.runtime_error(
            primitive.name,
            f"there is no op {primitive.name!r} to run on CPU",
            hint="a primitive of one's own needs a method vm_impl, or a name that is an op's",
        )
    constants = list(inspect.signature(kind).parameters)
    given = {name: primitive.attrs[name] for name in constants if name in primitive.attrs}
    left = [name for name in constants if name not in given]
    count = kind.arity if kind.arity is not None and len(args) > kind.arity else len(args)
    given.update(zip(left, args[count:]))
    return kind(**given)(*args[:count])


class PrimitiveWithInfer(Primitive):
    """Base class of primitives that say in Python what type their result has.

    Derived classes give `infer_shape` and `infer_dtype`, or `__infer__` for both, and `vm_impl`, which
    computes the result. Only `vm_impl` is needed here: the result has the type that it has.
    """

    def infer_shape(self, *args: Any) -> Any:
        """The shape of the result for the shapes of the inputs."""
        return None

    def infer_dtype(self, *args: Any) -> Any:
        """The dtype of the result for the dtypes of the inputs."""
        return None

    def infer_value(self, *args: Any) -> Any:
        """The result where the inputs are constants, or None."""
        return None

    def __infer__(self, *args: Any) -> dict[str, Any]:
        found = {}
        for key, rule in (
            ("dtype", self.infer_dtype),
            ("shape", self.infer_shape),
            ("value", self.infer_value),
        ):
            values = [arg[key] for arg in args]
            found[key] = None if key == "value" and None in values else rule(*values)
        return found


class PrimitiveWithCheck(Primitive):
    """Base class of primitives that check the types of their inputs in Python.

    Derived classes give `check_shape` and `check_dtype`, or `__check__` for both.
    """

    def check_shape(self, *args: Any) -> None:
        """Raise an error for input shapes that do not fit."""

    def check_dtype(self, *args: Any) -> None:
        """Raise an error for input dtypes that do not fit."""

    def __check__(self, *args: Any) -> None:
        for key, check in (("dtype", self.check_dtype), ("shape", self.check_shape)):
            check(*(arg[key] for arg in args))


def _register(init: Any, attributes: bool) -> Any:
    signature = inspect.signature(init)

    @functools.wraps(init)
    def register(self: Primitive, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        Primitive.__init__(self, type(self).__name__)
        self.init_attrs = dict(list(given.arguments.items())[1:])
        for name, value in self.init_attrs.items():
            if attributes:
                self.add_prim_attr(name, value)
            else:
                self.__dict__[name] = self.attrs[name] = value
        init(self, *args, **kwargs)

    register.decorated_func = init
    return register


def prim_attr_register(fn: Any) -> Any:
    """Decorator of a primitive's `__init__`: names it after its class, each argument becomes an attribute."""
    return _register(fn, attributes=True)


def prim_arg_register(fn: Any) -> Any:
    """Decorator of a primitive's `__init__`: each argument follows the tensors of a call."""
    return _register(fn, attributes=False)


class _Implementations(dict):
    """Implementations in Python by the name of the primitive or by its class."""

    def register(self, key: Any) -> Any:
        """Decorator: the function makes the implementation, or returns it, for a primitive of this name."""

        def keep(function: Any) -> Any:
            self[key] = function
            return function

        return keep


vm_impl_registry = _Implementations()
bprop_getters = _Implementations()  # functions that make the gradient rule of a user's primitive


def get_vm_impl_fn(prim: Any) -> Any:
    """The registered implementation in Python of a primitive, or of its name; None where there is none."""
    name = prim.name if isinstance(prim, Primitive) else prim
    make = vm_impl_registry.get(name) or vm_impl_registry.get(type(prim))
    return make(prim) if make is not None else None


def constexpr(
    fn: Any = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True,
    check: bool = True,
) -> Any:  # fmt: skip
    """Decorator of a function on constants: graphs hold its result.

    With `get_instance` False a class is made, whose objects are called. `name` is what it is called in
    messages; a capture computes it when it meets it, so `reuse_result` and `check` change nothing.
    """
    del reuse_result, check  # computed once for each capture

    def decorate(function: Any) -> Any:
        class Constexpr(PrimitiveWithInfer):
            def __init__(self, name: str | None = None):
                super().__init__(name or function.__name__)
                self.set_const_prim = True

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            def infer_value(self, *args: Any) -> Any:
                return function(*args)

        functools.update_wrapper(Constexpr, function, updated=())
        return Constexpr(name) if get_instance else Constexpr

    return decorate(fn) if fn is not None else decorate


def _primexpr(
    fn: Any = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True
) -> Any:
    """`constexpr` for functions whose arguments may be known only at run time."""
    return constexpr(fn, get_instance, name, reuse_result, False)


def _run_op(obj: Primitive, op_name: str, args: tuple) -> Any:
    """The primitive called with a tuple of inputs."""
    return obj(*args)


__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "constexpr", "get_vm_impl_fn",
    "prim_arg_register", "prim_attr_register", "vm_impl_registry",
]  # fmt: skip
