"""Looking at values while a program runs."""

import builtins

from mycelia.engine.ops.define import op

__all__ = []


@op(name="print", outputs=None, effect=True, nondiff=True)
def _print(inputs: "tensors", *, pieces: "any", settings: "any"):
    """Prints `pieces` as Python's `print` does; an int k among them stands for inputs[k],
    a recipe of `capture.text` for what it shows of them.

    Inside a compiled function the line appears when the graph runs, in the order of the program.
    `settings`: pairs of print's own keywords.
    """


@_print.infer
def _print(inputs, *, pieces, settings):
    return ()


@_print.on_tensors
def _print(inputs, *, pieces, settings):
    shown = (inputs[p] if type(p) is int else p.shown(inputs) if hasattr(p, "shown") else p for p in pieces)
    builtins.print(*shown, **dict(settings))
    return ()
