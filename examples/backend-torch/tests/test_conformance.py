"""Every sample of the ops that it knows, eager and compiled, and the contract of a backend."""

from __future__ import annotations

import pytest
from torch_backend.translation import FUNCTIONS

from mycelia.testing.conformance import backend_suite, contract_suite


@pytest.mark.parametrize("case", list(backend_suite("torch", {*FUNCTIONS})), ids=lambda case: case.name)
def test_conforms(case):
    case()


@pytest.mark.parametrize("case", list(contract_suite("torch")), ids=lambda case: case.name)
def test_keeps_the_contract(case):
    case()
