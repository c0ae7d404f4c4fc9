"""Fixtures of core's tests."""

from __future__ import annotations

import pytest

import mycelia as ms
from mycelia.engine import observing


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def mode(request):
    """The test runs in each mode."""
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


@pytest.fixture
def from_the_first_step():
    """Iterations count from 0, whatever ran before in this process."""
    observing.set_iteration(0)
