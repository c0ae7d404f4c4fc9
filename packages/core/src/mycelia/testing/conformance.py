"""The conformance suite of a backend: every op sample, values and gradients, against the reference bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mycelia.engine import _C
from mycelia.engine.autodiff.transforms import grad
from mycelia.engine.ops.elementwise.math import mul
from mycelia.engine.ops.reductions.reduce import sum as total_of
from mycelia.testing.comparison import assert_close, on_backend
from mycelia.testing.gradcheck import check_gradient
from mycelia.testing.samples import Sample, all_samples


def check_value(sample: Sample, backend: str) -> None:
    """The sample on `backend` equals the reference body."""
    with on_backend("reference"):
        want = sample.call()
    with on_backend(backend):
        got = sample.call()
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        assert_close(g, w, sample.options.get("_rtol"), f"{sample.name} output {i} on {backend}")


def check_compiled(sample: Sample, backend: str) -> None:
    """The sample as a graph that is compiled for `backend` equals the reference body."""
    from mycelia.engine.compile.jit import jit

    with on_backend("reference"):
        want = sample.call()
    with on_backend(backend):
        got = jit(lambda *args: sample.op(*args, **sample.attrs))(*sample.tensors())
    got = got if isinstance(got, tuple) else (got,)
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        # Passes may choose another algorithm.
        rtol = max(sample.options.get("_rtol") or 0, 1e-5) if w.dtype.itemsize >= 4 else None
        assert_close(g, w, rtol, f"{sample.name} compiled, output {i} on {backend}")


def differentiable_inputs(sample: Sample) -> list[np.ndarray]:
    """The floating arrays among the arguments, flat."""
    found: list[np.ndarray] = []

    def collect(value):
        if isinstance(value, (list, tuple)):
            for v in value:
                collect(v)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            found.append(value)

    collect(sample.args)
    return found


def _with_tensors(sample: Sample, tensors) -> tuple:
    supply = iter(tensors)

    def replace(value):
        if isinstance(value, (list, tuple)):
            return [replace(v) for v in value]
        return next(supply) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    return tuple(replace(a) for a in sample.args)


def has_gradient(sample: Sample) -> bool:
    """Whether the sample's gradient can be checked."""
    definition = sample.op.definition
    if definition.nondiff or definition.vjp_function is None or definition.updates:
        return False
    return sample.options.get("_grad", True) and bool(differentiable_inputs(sample))


def check_rule(sample: Sample) -> None:
    """The op's gradient rule agrees with finite differences, to second order."""
    with on_backend("reference"):
        arrays = [a.astype(np.float64) for a in differentiable_inputs(sample)]
        check_gradient(
            lambda *tensors: sample.call(_with_tensors(sample, tensors)),
            arrays,
            second=sample.options.get("_second", True),
            rtol=sample.options.get("_grad_rtol", 2e-5),
        )


def check_backend_gradient(sample: Sample, backend: str) -> None:
    """The gradient computed on `backend` equals the one computed by reference bodies."""
    arrays = differentiable_inputs(sample)
    positions = tuple(range(len(arrays)))

    def scalar(*tensors):
        total = None
        for o in sample.call(_with_tensors(sample, tensors)):
            if o.dtype.is_floating and o.size:
                # Uneven weights: a plain sum has no gradient where an op normalizes.
                weights = np.cos(np.arange(o.size)).reshape(o.shape).astype(o.dtype.np)
                term = total_of(mul(o, _C.Tensor(weights)))
                total = term if total is None else total + term
        return total

    def run():
        if scalar(*(_C.Tensor(a) for a in arrays)) is None:
            return ()
        found = grad(scalar, positions)(*(_C.Tensor(a) for a in arrays))
        return found if isinstance(found, tuple) else (found,)

    with on_backend("reference"):
        want = run()
    with on_backend(backend):
        got = run()
    for i, (g, w) in enumerate(zip(got, want)):
        # Gradients chain several ops: allow their errors to add up.
        assert_close(
            g, w, max(sample.options.get("_rtol") or 0, 1e-4), f"{sample.name} gradient {i} on {backend}"
        )


@dataclass(frozen=True)
class Case:
    """One check of the suite: call it; it raises AssertionError when the backend disagrees."""

    name: str
    check: object
    sample: Sample
    backend: str

    def __call__(self) -> None:
        self.check(self.sample, self.backend)


@dataclass(frozen=True)
class ContractCase:
    """One check of what a backend does besides ops: call it; it raises AssertionError when it fails."""

    name: str
    check: Callable[[str], None]
    backend: str

    def __call__(self) -> None:
        self.check(self.backend)


def contract_suite(backend: str) -> Iterator[ContractCase]:
    """Checks of memory, copies, streams, fallback, updates, interchange and training on a backend, to be
    parametrized over as those of `backend_suite`.
    """
    from mycelia.testing.device_contract import CHECKS

    for name, check in CHECKS.items():
        yield ContractCase(name, check, backend)


def backend_suite(backend: str, names=None) -> Iterator[Case]:
    """All checks for a backend, or those of the ops in `names`, to be parametrized over:

    ``@pytest.mark.parametrize("case", backend_suite("acme"), ids=lambda case: case.name)``.
    """
    for sample in all_samples(names):
        if sample.options.get("_value", True):
            yield Case(f"{sample.name}-value", check_value, sample, backend)
            if sample.args:
                yield Case(f"{sample.name}-compiled", check_compiled, sample, backend)
        if has_gradient(sample):
            yield Case(f"{sample.name}-gradient", check_backend_gradient, sample, backend)
