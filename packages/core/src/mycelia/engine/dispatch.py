"""The slow path of a call: check and infer, choose what runs,
and make the Plan that the native core remembers.

Order of choice (first hit wins): the target backend's kernel; its kernel in an emulated dtype; the op's
decomposition; the kernel of the host's backend; the reference body. The last two count as fallbacks: they are
logged once, counted, and forbidden by MYCELIA_FALLBACK=error. Where the target has memory of its own they
copy: inputs to the host, results back.
"""

from __future__ import annotations

import math
import threading
import time

from mycelia.engine import _C
from mycelia.engine.backends import registry
from mycelia.engine.backends.reference import launch_function, reference_function
from mycelia.engine.base import config, dtypes, errors, plugins
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops.define import LIST, OpDef

_KERNEL, _VIEW, _REFERENCE, _COMPOSE, _LAUNCH, _COPY = range(6)
_NUMBER_DTYPE = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float32, complex: dtypes.complex64}


class Typing:
    """How the inputs of one call take part: the dtype each is brought to."""

    __slots__ = ("casts", "in_types", "out_types", "scalar_dtypes")

    def __init__(
        self, definition: OpDef, types: tuple, counts: tuple, attrs: dict, known: tuple | None = None
    ):
        """`types`: flat, TensorType | None | type of a Python number. `known`: the types of the results, if
        they were inferred before; they hold if no cast is needed.
        """
        target = self._target_dtypes(definition, types, counts)
        self.casts: dict[int, dtypes.DType] = {}
        scalars, seen = [], []
        for i, (t, want) in enumerate(zip(types, target)):
            if t is None:
                scalars.append(-1)
                seen.append(None)
            elif isinstance(t, TensorType):
                scalars.append(-1)
                if want is not t.dtype:
                    self.casts[i] = want
                    t = TensorType(want, t.shape)
                seen.append(t)
            else:
                scalars.append(want.code)
                seen.append(TensorType(want, ()))
        self.scalar_dtypes = tuple(scalars)
        self.in_types = tuple(seen)
        if known is not None and not self.casts:
            self.out_types = known
        else:
            self.out_types = definition.infer_types(tuple(definition.group(self.in_types, counts)), attrs)

    @staticmethod
    def _target_dtypes(definition: OpDef, types: tuple, counts: tuple) -> list:
        names = []
        for (name, _), count in zip(definition.params, counts):
            names.extend([name] * count)
        first = next((t.dtype for t in types if isinstance(t, TensorType)), None)
        result = []
        for t in types:
            if t is None or isinstance(t, TensorType):
                result.append(t and t.dtype)
            else:
                result.append(first or _NUMBER_DTYPE[t])
        members = [i for i, n in enumerate(names) if n in definition.promote and types[i] is not None]
        if members:
            common = None
            for i in members:
                if isinstance(types[i], TensorType):
                    common = types[i].dtype if common is None else dtypes.promote(common, types[i].dtype)
            if common is None:
                common = dtypes.bool_
                for i in members:
                    common = dtypes.promote(common, _NUMBER_DTYPE[types[i]])
            for i in members:
                if not isinstance(types[i], TensorType):
                    common = dtypes.promote_number(common, types[i])
            for i in members:
                result[i] = common
        if definition.float_result:
            floating = members or range(min(1, len(types)))
            for i in floating:
                if result[i] is not None and not (result[i].is_floating or result[i].is_complex):
                    result[i] = dtypes.float32
        return result


def resolve(
    op: _C.Op, types: tuple, attr_values: tuple, counts: tuple, known: tuple | None = None
) -> _C.Plan:
    """The Plan for one signature; `known`: the types of its results, where a graph has them. Errors name the
    op and the user's line.
    """
    definition: OpDef = op.definition
    try:
        attrs = definition.canonical_attrs(attr_values)
        typing = Typing(definition, types, counts, attrs, known)
    except errors.MyceliaError as e:
        raise errors.about(op.name, e) from None
    except Exception as e:
        raise errors.about(op.name, e) from e.__cause__
    if typing.casts:
        return _compose(typing, attrs, _cast_then(op, typing.casts, counts))
    if definition.view:
        if typing.scalar_dtypes[0] >= 0:
            return _compose(typing, attrs, lambda x, *rest: op(_C.Tensor(x), *rest))
        return _plan(_VIEW, typing, attrs, b"", None)
    plugins.begin(compiling=False)
    target = registry.target()
    if definition.copies:
        there = registry.device_number(attrs["device"])
        return _plan(_COPY, typing, attrs, b"", None, device=there, home=there)
    shorts = registry.shorts_of(typing.in_types)
    static = not definition.dynamic
    kernel = target.kernel(op.name, shorts) if static else None
    if kernel is not None and target.backend.supports(op.name, typing.in_types, attrs):
        return _kernel_plan(definition, typing, attrs, kernel, counts, target, target)
    emulated = target.backend.emulated
    wide = {
        i: emulated[t.dtype] for i, t in enumerate(typing.in_types) if t is not None and t.dtype in emulated
    }
    if wide and static and not definition.updates and op.name != "cast":  # emulation is made of casts
        wide_shorts = [wide[i].short if i in wide else s for i, s in enumerate(shorts)]
        if target.kernel(op.name, wide_shorts) is not None:
            return _compose(typing, attrs, _emulate(op, typing, wide, counts))
    if definition.decomposition is not None and (definition.composed or target.backend.name != "reference"):
        function = definition.decomposition
        names = [a.name for a in definition.attrs]
        n = len(definition.params)
        return _compose(typing, attrs, lambda *v: function(*v[:n], **dict(zip(names, v[n:]))))
    if definition.only_in:
        raise errors.error(errors.NotSupportedError, op.name, f"it is computed in {definition.only_in} only")
    host = registry.host()
    if target.backend.name != "reference" and host is not target and static:
        kernel = host.kernel(op.name, shorts)
        if kernel is not None:
            note_fallback(op.name, target, shorts, host.backend.name)
            return _kernel_plan(definition, typing, attrs, kernel, counts, host, target)
    if target.backend.name != "reference" and static and not definition.on_host:
        note_fallback(op.name, target, shorts, "reference")
    body = reference_function(definition, attrs, typing.in_types, typing.out_types, counts)
    return _plan(_REFERENCE, typing, attrs, b"", body, home=target.device)


def resized(op: _C.Op, plan: _C.Plan, shapes: tuple) -> _C.Plan:
    """The Plan like `plan` for inputs of these shapes (None: absent). Called by the native core."""
    types = tuple(t and TensorType(t.dtype, shape) for t, shape in zip(plan.in_types, shapes))
    return resolve(op, types, tuple(plan.attrs.values()), counts_of(op, len(types)))


def counts_of(op: _C.Op, inputs: int) -> tuple[int, ...]:
    """How many of the flat `inputs` each parameter of `op` takes."""
    params = op.definition.params
    if params and params[0][1] == LIST:
        return (inputs - len(params) + 1, *(1 for _ in params[1:]))
    return tuple(1 for _ in params)


def _work(typing: Typing) -> int:
    sizes = [t.size for t in (*typing.in_types, *typing.out_types) if t is not None]
    total = sum(s for s in sizes if s != UNKNOWN)
    return min(total, 2**62) if math.isfinite(total) else 2**62


def _plan(
    kind: int, typing: Typing, attrs: dict, packed: bytes, function, kernel=None, device=0, home=0
) -> _C.Plan:
    """`device`: where it runs; `home`: where its results lie in the end."""
    return _C.Plan(kind, typing.in_types, typing.out_types, typing.scalar_dtypes, attrs, packed, function,
                   kernel.capsule if kernel else None, kernel.index if kernel else -1,
                   _work(typing), device, home)  # fmt: skip


def _compose(typing: Typing, attrs: dict, function) -> _C.Plan:
    return _plan(_COMPOSE, typing, attrs, b"", function)


def _kernel_plan(
    definition: OpDef,
    typing: Typing,
    attrs: dict,
    kernel: registry.Kernel,
    counts: tuple,
    owner: registry.LoadedBackend,
    target: registry.LoadedBackend,
) -> _C.Plan:
    """A plan for a `kernel` of backend `owner`; results are `target`'s."""
    where = {"device": owner.device, "home": target.device}
    if kernel.function is None:
        # A 0-byte struct still needs an address.
        return _plan(_KERNEL, typing, attrs, definition.pack(attrs) or bytes(8), None, kernel, **where)
    if owner.device:
        function = launch_function(
            owner.backend, definition, attrs, typing.out_types, counts, kernel.function
        )
        return _plan(_LAUNCH, typing, attrs, b"", function, **where)
    function = reference_function(
        definition, attrs, typing.in_types, typing.out_types, counts, kernel.function
    )
    return _plan(_REFERENCE, typing, attrs, b"", function, **where)


def _to_dtype(value, dtype: dtypes.DType):
    from mycelia.engine.ops.elementwise.cast import cast

    return cast(value, dtype=dtype)


def _apply_flat(values: tuple, counts: tuple, listed: bool, change: dict, convert) -> list:
    """`values` per parameter with the flat positions in `change` converted."""
    out, at = [], 0
    for p, count in enumerate(counts):
        value = values[p]
        if listed and p == 0:
            out.append([convert(v, change[at + i]) if at + i in change else v for i, v in enumerate(value)])
        else:
            out.append(convert(value, change[at]) if at in change else value)
        at += count
    return out


def _cast_then(op: _C.Op, casts: dict, counts: tuple):
    n = len(counts)
    listed = bool(op.definition.params) and op.definition.params[0][1] == LIST

    def run(*values):
        return op(*_apply_flat(values[:n], counts, listed, casts, _to_dtype), *values[n:])

    return run


def _emulate(op: _C.Op, typing: Typing, wide: dict, counts: tuple):
    """The op in a wider dtype, its results cast back to what was inferred."""
    run = _cast_then(op, wide, counts)
    back = [t.dtype for t in typing.out_types]

    def emulated(*values):
        result = run(*values)
        if isinstance(result, tuple):
            return tuple(r if r.dtype is d else _to_dtype(r, d) for r, d in zip(result, back))
        return result if result.dtype is back[0] else _to_dtype(result, back[0])

    return emulated


def note_fallback(op: str, target: registry.LoadedBackend, shorts: list, to: str) -> None:
    """Count a fallback and log the first of each (op, backend), with the copies that it makes;
    the setting `fallback` may silence or forbid it.
    """
    backend = target.backend.name
    policy = config.get("fallback")
    taken = ", ".join(s or "none" for s in shorts)
    if policy == "error":
        raise errors.error(
            errors.FallbackError,
            op,
            f"backend {backend} has no kernel for ({taken})",
            hint="unset MYCELIA_FALLBACK to let the reference body run it",
        )
    registry.fallbacks[op, backend] += 1
    if policy == "log" and registry.fallbacks[op, backend] == 1:
        import logging

        from mycelia.engine.base import log

        # A warning only for those who ask: without kernels for rare dtypes a program is right, just slower.
        level = logging.WARNING if config.get("debug") else logging.INFO
        copies = ", on copies of its tensors" if target.device else ""
        text = "%s(%s): no kernel in backend %s, %s runs it%s"
        log.logger(__name__).log(level, text, op, taken, backend, to, copies)


def fallback(op: _C.Op, plan: _C.Plan):
    """What runs instead of a native kernel that declined: the reference body. Called by the native core."""
    note_fallback(op.name, registry.target(), registry.shorts_of(plan.in_types), "reference")
    counts = counts_of(op, len(plan.in_types))
    return reference_function(op.definition, plan.attrs, plan.in_types, plan.out_types, counts)


_E_ARGUMENT, _E_MEMORY = 2, 3  # of abi.h


def kernel_error(op: _C.Op, code: int, text: str) -> Exception:
    """The exception for a kernel's failure. Called by the native core."""
    subject = op.name
    text = text.removeprefix(f"{subject}: ")
    if code == _E_MEMORY:
        return errors.error(errors.MyceliaMemoryError, subject, "no scratch memory could be had")
    if code == _E_ARGUMENT:
        kind = (
            errors.MyceliaIndexError
            if "index" in text or "out of bounds" in text
            else errors.MyceliaValueError
        )
        return errors.error(kind, subject, text)
    return errors.error(errors.InternalError, subject, f"the kernel failed with code {code}")


class _Interceptors(threading.local):
    """While a mode bit of the thread is on: what handles its calls, innermost last.
    (op, inputs, attrs) -> result.
    """

    def __init__(self) -> None:
        self.stack: list = []


_interceptors = _Interceptors()

#: Mode bits: a graph is captured (what `_C.mode() & TRACING` asks), calls are looked at, calls are batched.
TRACING, OBSERVING, BATCHING = 1, 2, 4

#: Set while a graph is captured: how a function with its own gradient enters it.
#: (fn, rule, args, kwargs) -> result.
custom_rule = None

#: Likewise how a hook on the gradient of a tensor does: (tensor, {number: hook}) -> None.
tensor_hook = None

#: Likewise the calls of Cells in it that wait for their gradient (`autodiff/forward_pass.py`).
forward_passes: list = []


def push_interceptor(function, bit: int) -> int:
    """Route all op calls of this thread through `function(op, inputs, attrs)` until popped;
    returns the old mode.
    """
    _interceptors.stack.append(function)
    return _C.set_mode(_C.mode() | bit)


def pop_interceptor(old_mode: int) -> None:
    """Undo the latest `push_interceptor`."""
    _interceptors.stack.pop()
    _C.set_mode(old_mode)


def is_innermost(function) -> bool:
    """Whether the calls of this thread go to this interceptor."""
    return bool(_interceptors.stack) and _interceptors.stack[-1] is function


def slow_call(op: _C.Op, inputs: tuple, attrs: tuple):
    """A call while a mode bit is set: the innermost interceptor decides."""
    if not _interceptors.stack:
        _C.set_mode(0)
        return op._execute(inputs, attrs)
    return _interceptors.stack[-1](op, inputs, attrs)


class _OpTimes:
    """Tells of each eager op of this thread and its time while the setting `debug` is at least 2."""

    mode: int | None = None  # of the thread before

    @classmethod
    def follow(cls, level: int) -> None:
        if level >= 2 and cls.mode is None:
            cls.mode = push_interceptor(cls.intercept, OBSERVING)
        elif level < 2 and cls.mode is not None:
            _interceptors.stack.remove(cls.intercept)
            _C.set_mode(_C.mode() & ~OBSERVING | cls.mode & OBSERVING)
            cls.mode = None

    @staticmethod
    def intercept(op: _C.Op, inputs: tuple, attrs: tuple):
        from mycelia.engine.base import log

        start = time.perf_counter_ns()
        result = op._execute(inputs, attrs)
        spent = time.perf_counter_ns() - start
        types = ", ".join("none" if x is None else f"{x.dtype.name}{list(x.shape)}" for x in inputs)
        log.show(__name__, f"{op.name}({types}): {spent / 1e3:.1f} us")
        return result


_C.set_hook("resolve", resolve)
_C.set_hook("slow_call", slow_call)
_C.set_hook("tensor_type", TensorType)
_C.set_dtypes(list(dtypes.ALL))
# Plans made under another policy hold choices that it would not make.
config.on_change("fallback", lambda policy: _C.clear_plans())
config.on_change("debug", _OpTimes.follow)
