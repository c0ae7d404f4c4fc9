"""Updates, streams, fallback, interchange, and LeNet, eagerly and compiled."""

from __future__ import annotations

import pytest

from mycelia.testing.conformance import contract_suite


@pytest.mark.parametrize("case", list(contract_suite("acme")), ids=lambda case: case.name)
def test_keeps_the_contract(case):
    case()
