"""What operators show or record of values: printed lines, assertions, summaries, files.

Each is an effect: it happens when its turn comes in the program, eagerly and in graphs.
"""

import builtins

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import config, errors
from mycelia.engine.ir.types import TensorType
from mycelia.engine.ops.control_flow import print_file, summary_sink
from mycelia.engine.ops.define import op

__all__: list[str] = []

_TAG = 10300  # of verbose messages, see `base.log_verbose`
_TRACING = 1  # the bit of `_C.mode()` that is set while a graph is captured


def is_captured() -> bool:
    """Whether calls of this thread become nodes of a graph."""
    return bool(_C.mode() & _TRACING)


def _tell(text: str) -> None:
    """A verbose message, for those who ask for them; others load no log."""
    if config.get("verbose_log"):
        from mycelia.engine.base import log

        if log.wants(_TAG):
            log.show(__name__, text, _TAG)


# ----------------------------------------------------------------------------------------- lines


@op(name="print_lines", outputs=None, effect=True, nondiff=True)
def _print_lines(inputs: "tensors", *, pieces: "any"):
    """Prints a line for each of `pieces`; an int k among them stands for inputs[k]."""


@_print_lines.infer
def _print_lines(inputs, *, pieces):
    return ()


@_print_lines.on_tensors
def _print_lines(inputs, *, pieces):
    shown = [piece.shown(inputs) if hasattr(piece, "shown") else piece for piece in pieces]  # `capture.text`
    path = config.get("print_file_path")
    _tell(f"Print: {len(shown)} pieces to {path or 'the screen'}")
    if path:
        print_file.append(path, [inputs[piece] if type(piece) is int else piece for piece in shown])
        return ()
    for piece in shown:
        builtins.print(_graph_text(inputs[piece]) if type(piece) is int else piece, flush=True)
    return ()


def _text(tensor) -> str:
    """The value of a tensor or Parameter as a Tensor shows itself."""
    return repr(tensor.value() if hasattr(tensor, "requires_grad") and hasattr(tensor, "value") else tensor)


def _graph_text(tensor) -> str:
    """A tensor as graphs print it: a lone number as such, others without commas between the numbers."""
    if tensor.ndim == 0:
        value = tensor.float().asnumpy() if tensor.dtype.name == "bfloat16" else tensor.asnumpy()
        return f"{value.item():g}" if value.dtype.kind == "f" else str(value + 0)
    head, _, body = _text(tensor).partition("value=")
    return f"{head}value={body.lstrip(' ').replace(',', '')}"


def _flat(values):
    """Containers that hold tensors fall apart; other constants are written as graphs hold them."""
    for value in values:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (tuple, list)) and any(map(_holds_tensor, value)):
            yield from _flat(value)
        else:
            yield value


def _holds_tensor(value) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return any(map(_holds_tensor, value))
    return hasattr(value, "bound") or hasattr(value, "ndim")


def _constant_text(value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_constant_text, value))})"
    return str(value)


def print_values(*values) -> None:
    """Each value on a line of its own, in the form of eager mode or of graphs."""
    if not is_captured():
        path = config.get("print_file_path")
        if path:
            print_file.append(path, values)
            return
        for value in values:
            builtins.print(_text(value) if hasattr(value, "asnumpy") else value, flush=True)
        return
    tensors, pieces = [], []
    for value in _flat(values):
        if hasattr(value, "bound"):  # a text of tensors
            pieces.append(value.bound(tensors))
        elif hasattr(value, "ndim") and hasattr(value, "dtype"):
            pieces.append(len(tensors))
            tensors.append(value)
        else:
            pieces.append(_constant_text(value))
    _print_lines(tensors, pieces=tuple(pieces))


# ----------------------------------------------------------------------------------------- assertions


@op(name="assert_true", effect=True, nondiff=True)
def _assert_true(inputs: "tensors", *, summarize: "int" = 3):
    """RuntimeError if inputs[0] is false, after the first `summarize` numbers of the others were printed.

    Shapes: inputs[0] one bool -> int32 [1].
    """
    if not inputs[0].all():
        lines = ["For 'Assert' condition is false."]
        for data in inputs[1:]:
            shown = data.reshape(-1)[: data.size if summarize < 0 else summarize]
            form = "d" if data.dtype.kind in "biu" else "g"
            lines.append(f"input data: [{' '.join(format(v, form) for v in shown.tolist())}]")
        builtins.print("\n".join(lines), flush=True)
        raise RuntimeError("assert failed")
    return np.zeros(1, np.int32)


@_assert_true.infer
def _assert_true(inputs, *, summarize):
    from mycelia.engine.base import dtypes

    if inputs[0].size != 1 or not inputs[0].dtype.is_bool:
        raise TypeError(f"the condition must be one bool, but it is {inputs[0]}")
    return TensorType(dtypes.int32, (1,))


@_assert_true.samples
def _assert_true(rand):
    yield [np.array(True), rand(2)]
    yield [np.array([True])], dict(summarize=1)


# ----------------------------------------------------------------------------------------- records


@op(name="summary", outputs=None, effect=True, nondiff=True)
def _summary(value, *, kind: "scalar|image|tensor|histogram", name: "str"):
    """Hands a value to the summary records that are open, under `name`."""


@_summary.infer
def _summary(value, *, kind, name):
    return ()


@_summary.on_tensors
def _summary(value, *, kind, name):
    summary_sink.record(kind, name, value)
    return ()


def summarize(kind: str, name: str, value) -> None:
    """Record a value. Errors: TypeError for a name that is no text, ValueError for an empty one."""
    owner = f"{kind.capitalize()}Summary"
    if not isinstance(name, str):
        raise errors.type_error(owner, f"the name must be a str, but got {type(name).__name__}")
    if not name:
        raise errors.value_error(owner, "the name must not be empty")
    _summary(value, kind=kind, name=name)


@op(name="dump_tensor", outputs=None, effect=True, nondiff=True)
def _dump_tensor(value, *, file: "str"):
    """Writes a value to ``{file}_{dtype}_{number}.npy``, the number counting the files of this process."""


@_dump_tensor.infer
def _dump_tensor(value, *, file):
    return ()


_dumped = [0]


@_dump_tensor.on_tensors
def _dump_tensor(value, *, file):
    stem = file[:-4] if file.endswith(".npy") else file
    data = value.float().asnumpy() if value.dtype.name == "bfloat16" else value.asnumpy()
    path = f"{stem}_{value.dtype.name}_{_dumped[0]}.npy"
    np.save(path, data)
    _dumped[0] += 1
    _tell(f"TensorDump: {path}, {value.dtype.name}{list(value.shape)}")
    return ()


@op(name="dump_gradient")
def _dump_gradient(x, *, file: "str"):
    """x itself; its gradient is written to a file on its way back.

    Shapes: any -> same.
    """
    return x.copy()


@_dump_gradient.infer
def _dump_gradient(x, *, file):
    return x


@_dump_gradient.vjp
def _dump_gradient(ct, *, file):
    _dump_tensor(ct, file=file)
    return ct
