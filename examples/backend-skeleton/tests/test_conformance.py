"""Every sample of the ops that the backend brings, values and gradients, and some that fall back."""

from __future__ import annotations

import pytest
from acme_backend.kernels import TABLE

from mycelia.testing.conformance import backend_suite

BROUGHT = {op for op, _ in TABLE}
FALLING_BACK = {"sub", "sigmoid", "mean", "transpose"}


@pytest.mark.parametrize(
    "case", list(backend_suite("acme", BROUGHT | FALLING_BACK)), ids=lambda case: case.name
)
def test_conforms(case):
    case()
