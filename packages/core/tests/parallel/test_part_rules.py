"""Each op with a rule for parts gives what it gives on whole operands, whichever axis is divided."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor
from mycelia.engine.compile import divided  # noqa: F401  (it loads the rules)
from mycelia.engine.ops.define import LIST, registry
from mycelia.engine.sharding import rules
from mycelia.engine.sharding.annotate import with_layout
from mycelia.engine.sharding.strategies import of_counts
from mycelia.parallel.engines import threads
from mycelia.testing.samples import Rand

RANKS = (2, 3, 5)
OPS = sorted(
    name
    for name, op in registry.items()
    if (op.definition.part_rule or name in rules._rules or hasattr(op.definition.batch_rule, "attribute"))
    and op.definition.sample_function is not None and not op.definition.dynamic
)  # fmt: skip


def cases(op):
    """Operands and attributes of samples, with an axis of one operand that some ranks may share."""
    for sample in list(op.definition.sample_function(Rand(3)))[:6]:
        sample = sample if isinstance(sample, tuple) else (sample,)
        attrs = dict(sample[-1]) if isinstance(sample[-1], dict) else {}
        arrays = sample[:-1] if isinstance(sample[-1], dict) else sample
        attrs = {k: v for k, v in attrs.items() if not k.startswith("_")}
        flat = [a for one in arrays for a in (one if isinstance(one, list) else [one])]
        for place, array in enumerate(flat):
            for axis, n in enumerate(getattr(array, "shape", ())):
                ranks = next((r for r in RANKS if n and n % r == 0), None)
                if ranks and array.size < 3000:
                    yield flat, attrs, place, axis, ranks


@pytest.mark.parametrize("name", OPS)
def test_parts_give_what_the_whole_gives(name):
    op, count = registry[name], 0
    listed = op.definition.params[0][1] == LIST
    before = ms.get_context("mode")
    for flat, attrs, place, axis, ranks in list(cases(op))[:8]:

        def run(*tensors, cut=True, flat=flat, attrs=attrs, place=place, axis=axis, ranks=ranks):
            given = [t * 1 if t is not None and t.dtype.is_floating else t for t in tensors]
            if cut:
                counts = tuple(ranks if i == axis else 1 for i in range(given[place].ndim))
                given[place] = with_layout(given[place], of_counts("test", counts, ranks), "test")
            rest = len(flat) - (len(op.definition.params) - 1) if listed else 0
            found = op(given[:rest], *given[rest:], **attrs) if listed else op(*given, **attrs)
            return found

        tensors = [None if a is None else Tensor(a) for a in flat]
        expected = run(*tensors, cut=False)
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        try:
            results = threads.run(ranks, lambda rank, t=tensors, r=run: ms.jit(r)(*t))
        finally:
            ms.reset_auto_parallel_context()
            ms.set_context(mode=before)
        many = expected if isinstance(expected, tuple) else (expected,)
        for found in results:
            for own, value in zip(found if isinstance(found, tuple) else (found,), many, strict=True):
                np.testing.assert_allclose(
                    own.asnumpy(), value.asnumpy(), rtol=1e-4, atol=1e-5, err_msg=f"{attrs} {place} {axis}"
                )
        count += 1
    assert count
