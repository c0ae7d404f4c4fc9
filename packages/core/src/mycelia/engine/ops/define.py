"""`@op`: one block defines an op; everything else about it is derived from the block.

The function's signature is the schema (positional = tensors, keyword-only = attributes), its docstring the
documentation, its body the NumPy meaning. `.vjp`, `.infer`, `.samples` and `.decompose` complete the block;
`.batch`, `.cost`, `.fuse` and `.layout` say what `vmap`, the profiler and the compiler may know of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

from mycelia.engine import _C
from mycelia.engine.base import errors, plugins
from mycelia.engine.ir.types import UNKNOWN, TensorType
from mycelia.engine.ops.attributes import Attribute
from mycelia.engine.ops.fusion import Fusion, step
from mycelia.engine.ops.layout_rules import LayoutRule

TENSOR, OPTIONAL, LIST = 0, 1, 2
_PARAM_KINDS = {None: TENSOR, "tensor": TENSOR, "tensor?": OPTIONAL, "tensors": LIST}
_ALWAYS_TUPLE, _NO_GRADIENT, _DYNAMIC = 1, 2, 4
_CT, _CTS, _OUT, _OUTS, _INPUT, _INPUT_SHAPE, _INPUT_DTYPE, _NEEDS, _ATTR = range(9)
MOST_BYTES = 2**47  # what a process can address
ELEMENTWISE = ("same", "broadcast")
PRECISIONS = ("short", "wide")
registry: dict[str, _C.Op] = {}


def find(name: str) -> _C.Op:
    """The op called `name`; KeyError names the nearest ones."""
    found = registry.get(name)
    if found is None:
        plugins.load_ops()
        found = registry.get(name)
    if found is None:
        raise errors.one_of(name, registry, subject="op", what="name")
    return found


def _is_open(type: TensorType | tuple | None) -> bool:
    """Whether a graph leaves a size of an input open."""
    if isinstance(type, tuple):
        return any(_is_open(t) for t in type)
    return type is not None and any(n.__class__ is not int or n == UNKNOWN for n in type.shape)


def check_size(result: TensorType, known: bool = False) -> None:
    """Raises ValueError for a negative size and MemoryError for a tensor that no machine can address.

    `known`: no size can be left open, so that -1 is as wrong as -2.
    """
    if any(type(n) is not int for n in result.shape):
        return  # what a graph leaves open is checked when it is known: a comparison would become a condition
    if any(n < UNKNOWN + known for n in result.shape):
        raise ValueError(f"the result would have a negative size: {list(result.shape)}")
    # The sizes beside a size of 0 count, too, as in NumPy: places among them must be numbers of 64 bits.
    count = math.prod(n for n in result.shape if n > 0) * result.dtype.itemsize
    if count > MOST_BYTES:
        raise MemoryError(f"the result would have shape {list(result.shape)}: {count} bytes")


class OpDef:
    """All that is known about one op. `op` is the callable made from it."""

    def __init__(
        self, body: Callable, *, name, infer, outputs, promote, float_result, view, updates, dynamic, nondiff,
        method, mindir, effect, elementwise=None, batch=None, cost=None, fuse=None, layout=None,
        precision=None, primitive=False, moves=False, exact=False, mindir_attributes=False, onnx=None,
        only_in=None, on_host=False, parts=None,
    ):  # fmt: skip
        code, defaults, notes = body.__code__, body.__defaults__ or (), body.__annotations__
        self.name = name or body.__name__.strip("_")
        self.doc = body.__doc__ or ""
        self.module = body.__module__
        self.body = body
        names = code.co_varnames[: code.co_argcount]
        self.params = tuple((n, _PARAM_KINDS[notes.get(n)]) for n in names)
        keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        given = body.__kwdefaults__ or {}
        self.attrs = tuple(Attribute(n, notes.get(n, "any"), given.get(n), n in given) for n in keyword)
        self.any_attrs = tuple(a.name for a in self.attrs if a.kind == "any")
        if len(defaults) != sum(kind == OPTIONAL for _, kind in self.params):
            raise TypeError(f"op {self.name}: exactly the tensor? parameters default to None")
        self.param_names = names
        self.infer_rule = infer
        self.outputs = outputs
        self.promote = tuple(promote)
        self.float_result = float_result
        self.view = view
        self.updates = tuple(updates)
        if any(kind == LIST for _, kind in self.params[:1]) and self.updates:
            raise TypeError(f"op {self.name}: an op on a list cannot update its inputs")
        self.dynamic = dynamic
        self.nondiff = nondiff
        if elementwise not in (None, *ELEMENTWISE):
            raise ValueError(
                f"op {self.name}: elementwise must be None or one of {list(ELEMENTWISE)}, got {elementwise!r}"
            )
        if elementwise is not None and (outputs != 1 or updates or dynamic):
            raise TypeError(f"op {self.name}: an elementwise op has one result and updates nothing")
        self.elementwise = elementwise
        self.batch_rule: Callable | None = batch
        self.moves, self.exact = moves, exact
        #: Whether it `moves` and has no number of its own to put in.
        self.only_moves = moves and not any(attribute.kind == "float" for attribute in self.attrs)
        self.cost_rule: int | Callable | None = 0 if moves and cost is None else cost
        self.fusion: Fusion | None = fuse if fuse is None or isinstance(fuse, Fusion) else step(fuse)
        self.layout_rule: LayoutRule | None = layout
        if precision not in (None, *PRECISIONS):
            raise ValueError(
                f"op {self.name}: precision must be None or one of {list(PRECISIONS)}, got {precision!r}"
            )
        self.precision = precision
        if mindir_attributes and mindir is None:
            raise TypeError(
                f"op {self.name}: mindir_attributes is about the operator of mindir, which is not given"
            )
        self.mindir, self.mindir_attributes = mindir, mindir_attributes
        self.onnx = onnx
        self.only_in, self.on_host = only_in, on_host
        if primitive is True and mindir is None:
            raise TypeError(
                f"op {self.name}: primitive=True stands for the name of mindir, which is not given"
            )
        self.primitive = mindir if primitive is True else primitive or None
        self.effect = effect or bool(updates)
        self.part_rule: Callable | None = parts
        self.decomposition: Callable | None = None
        self.copies = False  # a copy to another device, which no kernel does
        self.composed = False  # the decomposition is the meaning (`on_tensors`)
        self.sample_function: Callable | None = None
        self.vjp_function: Callable | None = None
        flags = (
            (_ALWAYS_TUPLE if outputs is None else 0)
            | (_NO_GRADIENT if nondiff else 0)
            | (_DYNAMIC if dynamic else 0)
        )
        self.op = _C.Op(
            self.name,
            self,
            self.params,
            tuple((a.name, a.default) if a.has_default else (a.name,) for a in self.attrs),
            tuple(names.index(u) for u in self.updates),
            flags,
        )
        if method:
            from mycelia.engine.tensors import attach as _methods

            _methods.attach(self.name if method is True else method, self.op)
        if registry.setdefault(self.name, self.op) is not self.op:
            raise ValueError(
                f"op {self.name} is defined twice: "
                f"in {registry[self.name].definition.module} and {self.module}"
            )

    @property
    def __signature__(self) -> inspect.Signature:
        """How the op is called: tensors, then attributes; for `help`, editors and the generated stubs."""
        hints = {TENSOR: "TensorLike", OPTIONAL: "TensorLike | None", LIST: "Sequence[Tensor]"}
        none = inspect.Parameter.empty
        rows = [(name, hints[kind], None if kind == OPTIONAL else none) for name, kind in self.params]
        rows += [(a.name, a.hint, a.default if a.has_default else none) for a in self.attrs]
        parameters, optional = [], False
        for name, hint, default in rows:
            late = optional and default is none  # after one that may be left out: by its name only
            kind = inspect.Parameter.KEYWORD_ONLY if late else inspect.Parameter.POSITIONAL_OR_KEYWORD
            optional |= default is not none
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=hint))
        parameters.sort(key=lambda p: p.kind)
        results = {None: "tuple[Tensor, ...]", 1: "Tensor"}
        returned = results.get(self.outputs) or f"tuple[{', '.join(['Tensor'] * self.outputs)}]"
        return inspect.Signature(parameters, return_annotation=returned)

    # decorators of the block; each gives the op back, so that the name stays bound to it

    def vjp(self, function: Callable) -> _C.Op:
        """Set the gradient rule. Its parameter names say what the tape keeps."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        positional = function
        if code.co_kwonlyargcount:
            keyword = names[code.co_argcount :]
            count = code.co_argcount

            def positional(*values):
                return function(*values[:count], **dict(zip(keyword, values[count:])))

        self.op._set_vjp(positional, tuple(self._vjp_parameter(n) for n in names))
        self.vjp_function = function
        return self.op

    def _vjp_parameter(self, name: str):
        index = {n: i for i, n in enumerate(self.param_names)}
        if name in index:
            return _INPUT, index[name], name
        for suffix, kind in (("_shape", _INPUT_SHAPE), ("_dtype", _INPUT_DTYPE)):
            if name.endswith(suffix) and name[: -len(suffix)] in index:
                return kind, index[name[: -len(suffix)]], name
        if any(a.name == name for a in self.attrs):
            return _ATTR, 0, name
        special = {"ct": _CT, "cts": _CTS, "out": _OUT, "outs": _OUTS, "needs": _NEEDS}
        if name in special:
            return special[name], 0, name
        raise TypeError(
            f"op {self.name}: its gradient rule asks for '{name}', which is no input, output or attribute"
        )

    def infer(self, function: Callable) -> _C.Op:
        """Set the shape rule: ``(*types, **attrs) -> TensorType`` or a tuple of them."""
        self.infer_rule = function
        return self.op

    def samples(self, function: Callable) -> _C.Op:
        """Set the generator of example arguments: ``(rand) -> yields arrays, (arrays..., dict(attrs))``."""
        self.sample_function = function
        return self.op

    def decompose(self, function: Callable) -> _C.Op:
        """Set an equal composition of other ops, for backends without a kernel."""
        self.decomposition = function
        return self.op

    def on_tensors(self, function: Callable) -> _C.Op:
        """Set the meaning of an op that computes nothing on arrays: it runs graphs, or does something with
        the Tensors themselves. Like a decomposition it takes and returns Tensors; it serves every backend,
        and the body of the op is its documentation alone.
        """
        self.composed = True
        return self.decompose(function)

    def batch(self, function: Callable) -> _C.Op:
        """Set the rule for a batch of examples, see `ops/batch_rules.py`: ``(call) -> outputs``."""
        self.batch_rule = function
        return self.op

    def cost(self, function: Callable) -> _C.Op:
        """Set the count of operations, see `ops/cost.py`: ``(inputs, outputs, **attrs) -> int or Cost``."""
        self.cost_rule = function
        return self.op

    def fuse(self, function: Callable) -> _C.Op:
        """Set the steps on float32, see `ops/fusion.py`: ``(program, *values, **attrs) -> value``."""
        self.fusion = Fusion(function)
        return self.op

    def parts(self, function: Callable) -> _C.Op:
        """Set how it works on parts of its operands, see `ops/part_rules.py`: ``(node) -> PartRule``."""
        self.part_rule = function
        return self.op

    def layout(self, function: Callable) -> _C.Op:
        """Set how images become channels last, see `ops/layout_rules.py`: ``(rewriter, node) -> outputs``.

        What are images among inputs and outputs, the option `layout` of the block says.
        Errors: TypeError without it.
        """
        if self.layout_rule is None:
            raise TypeError(f"op {self.name}: its block must say which values are images: layout=...")
        self.layout_rule = self.layout_rule._replace(emit=function)
        return self.op

    # derived facts

    def canonical_attrs(self, values: tuple) -> dict:
        """Attribute dict from values in schema order."""
        return {a.name: a.canonical(v) for a, v in zip(self.attrs, values)}

    def pack(self, attrs: dict) -> bytes:
        """The C attribute struct."""
        return b"".join(a.pack(attrs[a.name]) for a in self.attrs if a.in_c)

    def infer_types(self, types: tuple, attrs: dict) -> tuple[TensorType, ...]:
        """Output types from one type per parameter (a tuple for a list parameter, None for an absent one)."""
        if self.infer_rule is None:
            raise NotImplementedError(f"op {self.name} has no shape rule")
        found = self.infer_rule(*types, **attrs)
        found = found if isinstance(found, tuple) else (found,)
        if self.outputs is not None and not self.updates and len(found) != self.outputs:
            raise RuntimeError(
                f"op {self.name}: the shape rule gave {len(found)} types for {self.outputs} outputs"
            )
        known = not (self.dynamic or self.any_attrs or _is_open(types))  # graphs are among any attributes
        for type in found:
            check_size(type, known)
        return found

    def group(self, flat: tuple, counts: tuple) -> list:
        """Flat values back to one per parameter."""
        if not self.params or self.params[0][1] != LIST:
            return list(flat)
        return [tuple(flat[: counts[0]]), *flat[counts[0] :]]

    def __repr__(self) -> str:
        return f"OpDef({self.name})"


def op(
    body: Callable | None = None,
    *,
    name: str | None = None,
    infer: Callable | None = None,
    outputs: int | None = 1,
    promote: tuple[str, ...] = (),
    float_result: bool = False,
    view: bool = False,
    updates: tuple[str, ...] = (),
    dynamic: bool = False,
    nondiff: bool = False,
    method: bool | str = False,
    mindir: str | None = None,
    effect: bool = False,
    elementwise: str | None = None,
    batch: Callable | None = None,
    cost: int | Callable | None = None,
    fuse: str | Fusion | None = None,
    layout: LayoutRule | None = None,
    precision: str | None = None,
    primitive: bool | str = False,
    moves: bool = False,
    exact: bool = False,
    mindir_attributes: bool = False,
    onnx: str | None = None,
    only_in: str | None = None,
    on_host: bool = False,
    parts: Callable | None = None,
):
    """Define an op from a function; see docs/adding-an-op.md.

    `infer`: shape rule; `outputs`: how many results are returned, or None for as many as the rule gives;
    `promote`: parameters brought to a common dtype; `float_result`: integers become float32 first; `view`:
    the result is the first input's memory with a new shape; `updates`: inputs that the leading results
    overwrite; `dynamic`: the shape depends on the data; `nondiff`: no gradient flows; `method`: also a Tensor
    method; `mindir`: MindSpore's operator name, `mindir_attributes`: files have its arguments beyond tensors
    as attributes, not as inputs; `onnx`: ONNX's operator with the same inputs and attributes; `primitive`:
    name of a class of `ops.primitives` that only calls it, True: that of `mindir`; `effect`: the order of
    calls matters; `elementwise`: an element of the
    result depends only on those at its place in the inputs, which have one shape ("same") or
    are broadcast against each other ("broadcast"), so that one call serves a batch of examples and the axes
    of images may stand in any order; `moves`: the floating elements of the result are elements of the inputs,
    and it costs no operations; `exact`: they need no more digits or range than those of the inputs, so that
    nothing is rounded; `batch`: the rule of `vmap` (ops/batch_rules.py; without one the examples run
    one by one); `cost`: operations for each element of the largest tensor, or a rule (ops/cost.py); `fuse`:
    the step of a fused program on float32 (ops/fusion.py); `layout`: how it works on images with the channels
    last (ops/layout_rules.py); `precision`: what automatic mixed precision makes of it, "short": it gains
    from float16 and does not suffer, "wide": it needs the range or the sums of float32; `only_in`: what
    computes the op, in words: core has it in graphs alone, and the body is documentation; `on_host`: the body
    is what runs on every backend that brings no kernel, and no fallback, since it does not compute; `parts`:
    how it works on parts of its operands (ops/part_rules.py).
    """
    if body is not None:
        return op()(body)

    def define(function: Callable) -> _C.Op:
        return OpDef(
            function, name=name, infer=infer, outputs=outputs, promote=promote, float_result=float_result,
            view=view, updates=updates, dynamic=dynamic, nondiff=nondiff, method=method, mindir=mindir,
            effect=effect, elementwise=elementwise, batch=batch, cost=cost, fuse=fuse, layout=layout,
            precision=precision, primitive=primitive, moves=moves, exact=exact,
            mindir_attributes=mindir_attributes, onnx=onnx, only_in=only_in, on_host=on_host, parts=parts,
        ).op  # fmt: skip

    return define
