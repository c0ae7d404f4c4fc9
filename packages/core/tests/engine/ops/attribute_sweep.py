"""Calls each op with a number among a sample's attributes replaced by one of any size, in its own process.

`python attribute_sweep.py LOG SEED [COUNT]`: the case that runs stands in the file LOG, so that it is known
if the process dies of it. A call, eager or compiled, gives a result or an error that says what is wrong, both
the same, and takes no more memory than its result needs. What does not is printed, a line a case.
"""

from __future__ import annotations

import math
import random
import resource
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

INTS = (
    -(2**63) - 1, -(2**63), -(2**62), -(2**57), -(2**31) - 1, -(2**31), -(2**24), -1000, -3, -2, -1, 0, 1, 2,
    3, 5, 64, 2**15, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 1, 2**57, 2**62, 2**63 - 1, 2**63,
    2**100,
)  # fmt: skip
FLOATS = (
    -math.inf, -1e308, -(2.0**63), -1.0, -0.0, 0.0, 1e-310, 0.5, 1.0, 2.0**31, 2.0**63, 1e308,
    math.inf, math.nan,
)  # fmt: skip
EXTRA_BYTES = 400 << 20  # what a call may reserve beside what was there before
LARGE_BYTES = 16 << 20  # a result of this size may be refused under that limit: to compare takes copies
LIMIT_S = 60  # a call takes milliseconds


def replacements(attribute, given):
    """The values that take the place of `given`."""
    if attribute.kind == "float":
        return list(FLOATS)
    if attribute.kind == "int" or isinstance(given, (int, np.integer)):
        return list(INTS)
    given = tuple(int(v) for v in given or ())
    found = [(), (*given, 1), given[:-1], *((v,) * max(1, len(given)) for v in INTS)]
    for place in range(len(given)):
        found += [(*given[:place], v, *given[place + 1 :]) for v in INTS]
    return found


def cases(rng, count):
    """(sample, attributes): `count` values for each attribute of each op, each in any of the op's samples."""
    from mycelia.testing.samples import all_samples

    samples = {}
    for sample in all_samples():
        samples.setdefault(sample.op.name, []).append(sample)
    for several in samples.values():
        for attribute in several[0].op.definition.attrs:
            if attribute.kind in ("int", "ints", "float"):
                for sample in rng.choices(several, k=count):
                    given = sample.attrs.get(attribute.name, attribute.default)
                    yield (
                        sample,
                        {
                            **sample.attrs,
                            attribute.name: rng.choice(replacements(attribute, given)),
                        },
                    )


def flat(value):
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def outcome(call, sample):
    """The results of a call as arrays, or its error."""
    try:
        return [t.asnumpy() for t in flat(call(*sample.tensors()))]
    except Exception as e:
        return e


def is_large(sample, attrs):
    """Whether the op's rule promises a result that does not fit into the memory of this process."""
    from mycelia import Tensor
    from mycelia.engine import dispatch
    from mycelia.ir.types import TensorType

    op = sample.op
    inputs = [*flat(sample.tensors())]
    inputs += [None] * (len(op.definition.params) - len(sample.args))
    types = tuple(TensorType(x.dtype, x.shape) if isinstance(x, Tensor) else x and type(x) for x in inputs)
    values = tuple(attrs.get(a.name, a.default) for a in op.definition.attrs)
    plan = dispatch.resolve(op, types, values, dispatch.counts_of(op, len(types)))
    return any(n == -1 for t in plan.out_types for n in t.shape) or (
        sum(t.nbytes for t in plan.out_types) > LARGE_BYTES
    )


def is_clear(error, sample, attrs):
    from mycelia.errors import MyceliaError

    if isinstance(error, MemoryError):
        return "the result would have shape" in str(error) or is_large(sample, attrs)
    if isinstance(error, MyceliaError):
        return True
    return isinstance(error, (ValueError, TypeError, IndexError, RuntimeError, NotImplementedError))


def assert_equal(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    if a.nbytes > LARGE_BYTES or a.dtype.kind not in "fc":
        assert a.nbytes > LARGE_BYTES or np.array_equal(a, b), (a, b)
        return
    with np.errstate(all="ignore"):
        largest = np.abs(a[np.isfinite(a)]).max(initial=0.1)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5 * min(largest, 1e30))


def problem(sample, attrs):
    """What is wrong with the call, or None."""
    import mycelia as ms

    def call(*args):
        return sample.op(*args, **attrs)

    eager = outcome(call, sample)
    compiled = outcome(ms.jit(call), sample) if sample.args else eager
    for how, found in (("eager", eager), ("compiled", compiled)):
        if isinstance(found, Exception) and not is_clear(found, sample, attrs):
            return f"{how}: {type(found).__name__}: {found}"
    if isinstance(eager, MemoryError) or isinstance(compiled, MemoryError):
        return None  # the limit of this process may let one of them through
    if isinstance(eager, Exception) or isinstance(compiled, Exception):
        same = type(eager).__name__ == type(compiled).__name__
        return None if same else f"eager {eager!r}, compiled {compiled!r}"
    try:
        for a, b in zip(eager, compiled, strict=True):
            assert_equal(a, b)
    except (AssertionError, ValueError) as e:
        return f"eager and compiled differ: {e}"
    return differs_from_reference(eager, call, sample)


def differs_from_reference(results, call, sample):
    """How they differ from those of the op's reference body, None if they do not or it has none.

    Gradients take what the forward op computed with the attributes that the sample had, and `conv_last` and
    its like weights that were packed for them: with others they have no meaning.
    """
    from mycelia import Tensor
    from mycelia.testing.comparison import assert_close, on_backend

    if sample.op.name.endswith("_grad") or "algorithm" in sample.attrs:
        return None
    try:
        with on_backend("reference"):
            wanted = flat(call(*sample.tensors()))
    except Exception:  # NumPy is not made for each of these numbers
        return None
    rtol = max(sample.options.get("_rtol") or 0, 1e-4)
    try:
        for a, b in zip(results, wanted, strict=True):
            if b.nbytes <= LARGE_BYTES:
                assert_close(Tensor(a), b, rtol, "against the reference")
    except (AssertionError, ValueError) as e:
        return str(e)
    return None


def main(log, seed, count=1):
    warnings.filterwarnings("ignore")
    listed = list(cases(random.Random(int(seed)), int(count)))
    for sample, _ in listed[:100]:  # what is loaded at first use is no memory of a call
        problem(sample, sample.attrs)
    here = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (here + EXTRA_BYTES,) * 2)
    for sample, attrs in listed:
        case = f"{sample.name} {attrs}"
        Path(log).write_text(case)
        signal.alarm(LIMIT_S)
        found = problem(sample, attrs)
        if found is not None:
            print(f"{case}: {found}".replace("\n", " ")[:400])


if __name__ == "__main__":
    main(*sys.argv[1:])
