"""Every sample of the ops that the backend brings, some that fall back, and the contract of a device."""

from __future__ import annotations

import pytest
from far_backend.kernels import NAMES

from mycelia.testing.conformance import backend_suite, contract_suite

FALLING_BACK = {"sinh", "cumsum", "batch_norm", "topk", "gather", "concat", "unique", "where"}


@pytest.mark.parametrize(
    "case", list(backend_suite("far", {*NAMES, *FALLING_BACK})), ids=lambda case: case.name
)
def test_conforms(case):
    case()


@pytest.mark.parametrize("case", list(contract_suite("far")), ids=lambda case: case.name)
def test_keeps_the_contract(case):
    case()
