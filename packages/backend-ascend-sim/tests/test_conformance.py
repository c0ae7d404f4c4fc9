"""Every sample of every op, and the contract of a device."""

from __future__ import annotations

import pytest

from mycelia.testing.conformance import backend_suite, contract_suite
from mycelia_backend_ascend_sim import options


@pytest.fixture(autouse=True)
def float32_products():
    """The suite's tolerances are those of float32: the cube takes its operands as they are."""
    with options.context(precision_mode="must_keep_origin_dtype"):
        yield


@pytest.mark.parametrize("case", list(backend_suite("ascend-sim")), ids=lambda case: case.name)
def test_conforms(case):
    case()


@pytest.mark.parametrize("case", list(contract_suite("ascend-sim")), ids=lambda case: case.name)
def test_keeps_the_contract(case):
    case()
